package schedules

import (
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/recurrence"
	"github.com/sendquota/sendquota/internal/rest"
)

// runView is the outcome of an occurrence.
type runView struct {
	At       string                `json:"at" format:"date-time"`
	Outcome  recurrence.RunOutcome `json:"outcome" enum:"submitted,refused,skipped"`
	Push     *string               `json:"push" format:"uuid" nullable:"true" doc:"The push, if it was submitted."`
	Campaign *string               `json:"campaign" format:"uuid" nullable:"true" doc:"The campaign, if it was started."`
	Reason   string                `json:"reason" doc:"For a refused run, the name of the problem that a submit would have got, for example quota-exceeded, or campaign-state; for a skipped run, missed or paused."`
	Rules    []string              `json:"rules" doc:"The rules, quiet hours or caps that refused it."`
	Detail   string                `json:"detail,omitempty" doc:"The error of an invalid run."`
}

type runsView struct {
	Runs          []runView `json:"runs" doc:"The latest first."`
	NextPageToken string    `json:"next_page_token" doc:"The page_token of the next page; empty only at the end of the list."`
}

func runViewOf(r recurrence.Run) runView {
	v := runView{At: rest.Stamp(r.At), Outcome: r.Outcome, Reason: r.Reason, Rules: append([]string{}, r.Rules...), Detail: r.Detail}
	if r.Push != uuid.Nil {
		id := r.Push.String()
		v.Push = &id
	}
	if r.Campaign != uuid.Nil {
		v.Campaign = rest.MaybeText(r.Campaign.String())
	}
	return v
}

var runsParams = rest.Pages[rest.PageParams]()

// listRuns answers with a page of a schedule's runs.
func (h *schedules) listRuns(c *rest.Call) error {
	return rest.List(c, &runsParams, func(q rest.PageParams, before time.Time) ([]recurrence.Run, *time.Time, error) {
		page, err := h.svc.Runs(c.Request.Context(), c.Caller.Tenant, c.ID, before, q.Size)
		return page.Runs, rest.OrNowhere(page.Next), rest.NoSuch("schedule", err)
	}, func(all []recurrence.Run, next string) any { return runsView{rest.ViewsOf(all, runViewOf), next} })
}

type nextView struct {
	Next []string `json:"next" doc:"The next times, the earliest first; fewer than requested if the schedule ends."`
}

var nextParams = rest.Table[int]{Fields: []rest.Field[int]{
	rest.Row("n", rest.Optional, rest.Integer(func(n *int, v int) { *n = v }, 1, 100).Or("5"), "The number of times to return.", nil),
}}

// nextTimes answers with the next times of a schedule.
func (h *schedules) nextTimes(c *rest.Call) error {
	var n int
	nextParams.ReadQuery(c.Request, &n, &c.Errors)
	if err := c.Errors.Err(); err != nil {
		return err
	}
	times, err := h.svc.Next(c.Request.Context(), c.Caller.Tenant, c.ID, n)
	if err != nil {
		return rest.NoSuch("schedule", err)
	}
	return c.Answer(http.StatusOK, nextView{rest.ViewsOf(times, rest.Stamp)})
}
