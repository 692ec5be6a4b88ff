package httpapi

import (
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
)

// runView is what became of one occurrence.
type runView struct {
	At       string          `json:"at" format:"date-time"`
	Outcome  push.RunOutcome `json:"outcome" enum:"submitted,refused,skipped"`
	Push     *string         `json:"push" format:"uuid" nullable:"true" doc:"The push, if it was submitted."`
	Campaign *string         `json:"campaign" format:"uuid" nullable:"true" doc:"The campaign, if it was started."`
	Reason   string          `json:"reason" doc:"For a refused run, the name of the problem that a submit would have got, for example quota-exceeded, or campaign-state; for a skipped run, missed or paused."`
	Rules    []string        `json:"rules" doc:"The rules, quiet hours or caps that refused it."`
	Detail   string          `json:"detail,omitempty" doc:"The error of an invalid run."`
}

type runsView struct {
	Runs          []runView `json:"runs" doc:"The latest first."`
	NextPageToken string    `json:"next_page_token" doc:"The page_token of the next page; empty only at the end of the list."`
}

func runViewOf(r push.Run) runView {
	v := runView{At: stamp(r.At), Outcome: r.Outcome, Reason: r.Reason, Rules: append([]string{}, r.Rules...), Detail: r.Detail}
	if r.Push != uuid.Nil {
		id := r.Push.String()
		v.Push = &id
	}
	if r.Campaign != uuid.Nil {
		v.Campaign = maybeText(r.Campaign.String())
	}
	return v
}

var runsParams = pages[pageParams]()

// listRuns answers with a page of what became of a schedule's occurrences.
func (h *schedules) listRuns(c *call) error {
	return list(c, &runsParams, func(q pageParams, before time.Time) ([]push.Run, *time.Time, error) {
		page, err := h.svc.Runs(c.r.Context(), c.caller.Tenant, c.id, before, q.size)
		return page.Runs, orNowhere(page.Next), noSuch("schedule", err)
	}, func(all []push.Run, next string) any { return runsView{viewsOf(all, runViewOf), next} })
}

type nextView struct {
	Next []string `json:"next" doc:"The next times, the earliest first; fewer than requested if the schedule ends."`
}

var nextParams = table[int]{fields: []field[int]{
	row("n", optional, integer(func(n *int, v int) { *n = v }, 1, 100).or("5"), "The number of times to return.", nil),
}}

// nextTimes answers with the times at which a schedule will happen.
func (h *schedules) nextTimes(c *call) error {
	var n int
	nextParams.readQuery(c.r, &n, &c.bad)
	if err := c.bad.err(); err != nil {
		return err
	}
	times, err := h.svc.Next(c.r.Context(), c.caller.Tenant, c.id, n)
	if err != nil {
		return noSuch("schedule", err)
	}
	return c.answer(http.StatusOK, nextView{viewsOf(times, stamp)})
}
