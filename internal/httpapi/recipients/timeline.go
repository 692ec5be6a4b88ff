package recipients

import (
	"cmp"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/rest"
	"github.com/sendquota/sendquota/internal/schedule"
)

// timelineView lists the events of a recipient.
type timelineView struct {
	Entries   []entryView `json:"entries" doc:"The oldest first."`
	Truncated bool        `json:"truncated" doc:"true: some entries are left out, because there are thousands of pushes; request a shorter time."`
}

type entryView struct {
	At       string             `json:"at" format:"date-time" doc:"The time of the event."`
	Kind     schedule.EventKind `json:"kind" enum:"booked,refused,deferred,attempt,sent,failed,canceled,expired"`
	Push     *string            `json:"push" format:"uuid" nullable:"true" doc:"null: a refusal, which has no push."`
	Channel  string             `json:"channel"`
	Category string             `json:"category"`
	Campaign *string            `json:"campaign" format:"uuid" nullable:"true"`
	SendAt   *string            `json:"send_at" format:"date-time" nullable:"true" doc:"For booked, the send time; for deferred, the new send time, if it is known; for refused, the requested one."`
	Reason   string             `json:"reason"`
}

func entryViewOf(e schedule.Event) entryView {
	v := entryView{At: rest.Stamp(e.At), Kind: e.Kind, Channel: e.Channel, Category: e.Category, SendAt: rest.MaybeTime(e.SendAt), Reason: e.Reason, Campaign: rest.MaybeID(e.Campaign)}
	if e.Push != uuid.Nil {
		id := e.Push.String()
		v.Push = &id
	}
	return v
}

// timelineQuery is the time of a timeline.
type timelineQuery struct{ from, until time.Time }

var timelineParams = rest.Table[timelineQuery]{Fields: []rest.Field[timelineQuery]{
	rest.Row("from", rest.Optional, rest.Moment(func(q *timelineQuery, t time.Time) { q.from = t }), "Only events at or after this time. Default: 400 days before until. RFC 3339 with a zone.", rest.TimeExample),
	rest.Row("until", rest.Optional, rest.Moment(func(q *timelineQuery, t time.Time) { q.until = t }), "Only events before this time. Default: now. RFC 3339 with a zone.", "2026-12-08T09:00:00Z"),
}}

// timeline answers with the events of a recipient.
func (h *timelines) timeline(c *rest.Call) error {
	var q timelineQuery
	timelineParams.ReadQuery(c.Request, &q, &c.Errors)
	until := cmp.Or(q.until, c.Now().Add(time.Second).UTC())
	from := cmp.Or(q.from, until.Add(-rest.MaxSpan))
	rest.CheckFrom(c, &c.Errors, from, until)
	if err := c.Ready(rest.SlotsBytes); err != nil {
		return err
	}
	events, all, err := h.svc.Timeline(c.Request.Context(), quota.Recipient{Tenant: c.Caller.Tenant, ID: c.Text}, from, until)
	if err != nil {
		return err
	}
	return c.Compute(func() error {
		return c.Answer(http.StatusOK, timelineView{rest.ViewsOf(events, entryViewOf), !all})
	})
}

func (h *timelines) routes(s *rest.Spec) []rest.Operation {
	at := rest.ExampleTime(0)
	of := schedule.Event{At: at.Add(-24 * time.Hour), Kind: schedule.Booked, Push: uuid.MustParse(rest.ExampleID), Channel: "push", Category: "marketing", SendAt: at}
	attempt, sent := of, of
	attempt.At, attempt.Kind, attempt.SendAt, attempt.Reason = at.Add(120*time.Millisecond), schedule.Attempt, time.Time{}, string(push.Delivered)
	sent.At, sent.Kind, sent.SendAt = at.Add(1200*time.Millisecond), schedule.Sent, time.Time{}
	return []rest.Operation{{
		ID: "recipient-timeline", Method: http.MethodGet, Path: Path + "/{id}/timeline", Tag: Tag, Scope: push.ScopeRecipientsRead, Serve: h.timeline,
		Summary:     "Read a recipient's timeline",
		Description: "Returns the events of the recipient's pushes. Only the last 20 refusals of a week are kept; they are stored in Redis only and are lost with it.",
		Query:       &timelineParams,
		Status:      http.StatusOK, Answer: "The timeline.", Example: timelineView{Entries: []entryView{entryViewOf(of), entryViewOf(attempt), entryViewOf(sent)}},
	}}
}
