package pushes

import (
	"cmp"
	"net/http"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/rest"
	"github.com/sendquota/sendquota/internal/schedule"
)

// availabilityView lists the times at which a push could be booked for a recipient. All time spans are half-open, in whole seconds.
type availabilityView struct {
	AsOf     string           `json:"as_of" format:"date-time" doc:"The second of the answer. No time before it is free."`
	From     string           `json:"from" format:"date-time"`
	Until    string           `json:"until" format:"date-time"`
	TimeZone string           `json:"time_zone" doc:"The recipient's time zone, or else the default zone of the policy."`
	Free     []spanView       `json:"free" doc:"The send times that a submit of such a push accepts within the tenant's caps: in each span, the whole seconds from its from on and before its until."`
	Rules    []ruleBlocksView `json:"rules" doc:"The rules and quiet hours that apply to such a push, in the policy's order. None: the category bypasses them."`
	Bookings []bookingView    `json:"bookings" doc:"The pushes with a place at or after from and before until, by time."`
	OptedOut *optOutsView     `json:"opted_out,omitempty" doc:"The recipient's opt-outs that forbid the push; only if there are any. Then no time is free."`
	NextFrom *string          `json:"next_from" format:"date-time" nullable:"true" doc:"Set if the answer ends early, because it would have more than 5,000 bookings or blocked spans: repeat the request with this time as from. null: the answer is complete."`
}

// spanView is a time span in whole seconds.
type spanView struct {
	From  string `json:"from" format:"date-time"`
	Until string `json:"until" format:"date-time"`
}

// ruleBlocksView lists the times at which a rule has no place.
type ruleBlocksView struct {
	Rule          string            `json:"rule"`
	Limit         int               `json:"limit"`
	WindowSeconds float64           `json:"window_seconds" doc:"The length of the window; for a rule with per, and for quiet hours, the length of the period that contains from, or of the time between two periods."`
	Quiet         bool              `json:"quiet" doc:"true: quiet hours, not a rule."`
	Blocked       []blockedSpanView `json:"blocked" doc:"The times without a place for such a push. They may overlap, and may extend before from and after until."`
}

// blockedSpanView is a time span in whole seconds without a place.
type blockedSpanView struct {
	From      *string  `json:"from" format:"date-time" nullable:"true" doc:"null: without beginning."`
	Until     *string  `json:"until" format:"date-time" nullable:"true" doc:"null: without end."`
	Conflicts []string `json:"conflicts" doc:"The ids of the pushes that fill the rule, by send time: the first ten. A rule of limit 0 and quiet hours have none."`
	Omitted   int      `json:"conflicts_omitted,omitempty" doc:"The number of further conflicts."`
}

// mostConflicts is the largest number of pushes that a blocked span names.
const mostConflicts = 10

// availabilityQuery is the push and the time span of a query.
type availabilityQuery struct {
	quotaQuery
	without uuid.UUID
}

var availabilityParams = rest.Table[availabilityQuery]{Fields: []rest.Field[availabilityQuery]{
	rest.Row("from", rest.Optional, rest.Moment(func(q *availabilityQuery, t time.Time) { q.from = t }), "Rounded up to a second. Default: now. RFC 3339 with a zone.", rest.TimeExample),
	rest.Row("until", rest.Optional, rest.Moment(func(q *availabilityQuery, t time.Time) { q.until = t }), "Rounded up to a second. Default: 24 hours after from. RFC 3339 with a zone.", "2026-12-02T09:00:00Z"),
	rest.Row("channel", rest.Optional, rest.Named(func(q *availabilityQuery, s string) { q.kind.Channel = s }, 0, MaxChannel), ofChannel.Description, ofChannel.Example),
	rest.Row("category", rest.Optional, rest.Named(func(q *availabilityQuery, s string) { q.kind.Category = s }, 0, MaxCategory), ofCategory.Description, ofCategory.Example),
	rest.Row("without", rest.Optional, rest.Identifier(func(q *availabilityQuery, id uuid.UUID) { q.without = id }),
		"Answer as if this push of the recipient were not booked: the free times include those that it can be moved to.", rest.ExampleID),
}}

// availability answers with the times at which a push could be booked for a recipient. It books nothing.
func (h *quotas) availability(c *rest.Call) error {
	var q availabilityQuery
	availabilityParams.ReadQuery(c.Request, &q, &c.Errors)
	who := h.subject(c, q.kind.Channel)
	from := ceilSecond(cmp.Or(q.from, c.Now()))
	until := ceilSecond(cmp.Or(q.until, from.Add(defaultSpan)))
	rest.CheckSpan(c, from, until, &c.Errors)
	if err := c.Ready(rest.SlotsBytes); err != nil {
		return err
	}
	found, err := h.svc.Availability(c.Request.Context(), who, q.kind, from, until, q.without)
	if err != nil {
		return err
	}
	return c.Compute(func() error { return c.Answer(http.StatusOK, availabilityViewOf(found, from, until)) })
}

func availabilityViewOf(found schedule.Availability, from, until time.Time) availabilityView {
	v := availabilityView{
		AsOf: rest.Stamp(found.Now), From: rest.Stamp(from), Until: rest.Stamp(until), TimeZone: found.Zone.String(), NextFrom: rest.MaybeTime(found.Next),
		Free:     rest.ViewsOf(found.Free, func(s quota.Span) spanView { return spanView{rest.Stamp(s.From), rest.Stamp(s.Until)} }),
		Rules:    ruleBlocksViews(found.Policy, found.Blocked, from),
		Bookings: rest.ViewsOf(found.Bookings, bookingViewOf),
	}
	if found.OptedOut.Any() {
		v.OptedOut = optOutsViewOf(found.OptedOut)
	}
	return v
}

// ruleBlocksViews returns a view for each rule, which includes the places that are reserved for other categories.
func ruleBlocksViews(policy quota.Policy, blocked []quota.Interval, from time.Time) []ruleBlocksView {
	views, at := []ruleBlocksView{}, map[string]int{}
	for _, r := range policy {
		if _, known := at[r.Name]; !known {
			at[r.Name] = len(views)
			views = append(views, ruleBlocksView{Rule: r.Name, Limit: r.Limit, WindowSeconds: windowSeconds(r, from), Quiet: r.Quiet, Blocked: []blockedSpanView{}})
		}
	}
	for i := range blocked {
		if s := blocked[i].Seconds(); s.From.IsZero() || s.Until.IsZero() || s.From.Before(s.Until) {
			of := &views[at[blocked[i].Rule.Name]]
			of.Blocked = append(of.Blocked, blockedSpanViewOf(s, blocked[i].Bookings))
		}
	}
	return views
}

func blockedSpanViewOf(s quota.Span, by []quota.Booking) blockedSpanView {
	named := by[:min(len(by), mostConflicts)]
	ids := rest.ViewsOf(named, func(b quota.Booking) string { return b.ID.String() })
	return blockedSpanView{From: rest.MaybeTime(s.From), Until: rest.MaybeTime(s.Until), Conflicts: ids, Omitted: len(by) - len(named)}
}

func bookingViewOf(h booking.Held) bookingView {
	return bookingView{ID: h.ID.String(), SendAt: rest.Stamp(h.At), Status: string(h.Status)}
}

func (h *quotas) availabilityRoutes(s *rest.Spec) []rest.Operation {
	from, until := rest.ExampleTime(-time.Hour), rest.ExampleTime(time.Hour)
	held := booking.Held{Booking: quota.Booking{ID: uuid.MustParse(rest.ExampleID), At: rest.ExampleTime(0)}, Status: push.Scheduled}
	policy := quota.Policy{exampleRule}
	blocked := policy.Blocked(quota.NewTimeline([]quota.Booking{held.Booking}), from, until)
	return []rest.Operation{{
		ID: "recipient-availability", Method: http.MethodGet, Path: "/v1/recipients/{id}/availability", Tag: TagQuota, Scope: push.ScopeQuota, Serve: h.availability,
		Summary: "Read when a push could be booked for a recipient",
		Description: "Returns the free send times in [from, until), the times that each rule blocks, and the pushes that have a place. " +
			"All spans are half-open and in whole seconds, the resolution of send times. from and until are at most 400 days apart.",
		Query:  &availabilityParams,
		Status: http.StatusOK, Answer: "The free and the blocked times.", Example: availabilityViewOf(schedule.Availability{
			Slots: schedule.Slots{Bookings: []booking.Held{held}, Blocked: blocked}, Policy: policy, Now: from, Zone: time.UTC,
			Free: quota.FreeSpans(blocked, quota.Span{From: from, Until: until}),
		}, from, until),
	}}
}
