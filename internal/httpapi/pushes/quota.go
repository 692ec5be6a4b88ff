package pushes

import (
	"cmp"
	"net/http"
	"slices"
	"time"

	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/rest"
)

// recipientView is the use of a recipient's quota.
type recipientView struct {
	Recipient       string      `json:"recipient"`
	At              string      `json:"at" format:"date-time"`
	Rules           []usageView `json:"rules"`
	Allowed         bool        `json:"allowed" doc:"One more send has a place at the time."`
	NextAvailableAt *string     `json:"next_available_at" format:"date-time" nullable:"true" doc:"The first free time at or after the time; null if there is none."`
}

// quotaQuery is the send, or the time span, of a query.
type quotaQuery struct {
	at, from, until time.Time // zero: absent
	kind            quota.Kind
}

var (
	ofChannel = rest.Row("channel", rest.Optional, rest.Named(func(q *quotaQuery, s string) { q.kind.Channel = s }, 0, MaxChannel),
		"The channel of the intended send. Default: the first one.", "push")
	ofCategory = rest.Row("category", rest.Optional, rest.Named(func(q *quotaQuery, s string) { q.kind.Category = s }, 0, MaxCategory), "The category of the intended send.", "marketing")
)

var quotaParams = rest.Table[quotaQuery]{Fields: []rest.Field[quotaQuery]{
	rest.Row("at", rest.Optional, rest.Moment(func(q *quotaQuery, t time.Time) { q.at = t }),
		"The intended send time, rounded up to a second. Default: now. RFC 3339 with a zone.", rest.TimeExample),
	ofChannel, ofCategory,
}}

var slotsParams = rest.Table[quotaQuery]{Fields: []rest.Field[quotaQuery]{
	rest.Row("from", rest.Optional, rest.Moment(func(q *quotaQuery, t time.Time) { q.from = t }), "Default: now. RFC 3339 with a zone.", rest.TimeExample),
	rest.Row("until", rest.Optional, rest.Moment(func(q *quotaQuery, t time.Time) { q.until = t }), "Default: 24 hours after from. RFC 3339 with a zone.", rest.TimeExample),
	ofChannel, ofCategory,
}}

// recipientQuota answers with the use of every rule for a recipient around a time.
func (h *quotas) recipientQuota(c *rest.Call) error {
	var q quotaQuery
	quotaParams.ReadQuery(c.Request, &q, &c.Errors)
	who := h.subject(c, q.kind.Channel)
	at := ceilSecond(cmp.Or(q.at, c.Now()))
	if err := c.Errors.Err(); err != nil {
		return err
	}
	usage, d, err := h.svc.Quota(c.Request.Context(), who, q.kind, at)
	if err != nil {
		return err
	}
	return c.Answer(http.StatusOK, recipientView{
		Recipient: who.ID, At: rest.Stamp(at), Rules: usageViews(usage, at), Allowed: d.Allowed(), NextAvailableAt: rest.MaybeTime(d.Next),
	})
}

// subject returns the recipient of the path, and checks the channel.
func (h *quotas) subject(c *rest.Call, channel string) quota.Recipient {
	if channel != "" {
		if wrong := invalid.UnknownName("channel", channel, h.svc.Channels(c.Caller.Tenant)); wrong != "" {
			rest.BadParameter(&c.Errors, "channel", wrong, channel)
		}
	}
	return quota.Recipient{Tenant: c.Caller.Tenant, ID: c.Text}
}

// defaultSpan is the time of a query without until.
const defaultSpan = 24 * time.Hour

// ceilSecond rounds up to the resolution of send times.
func ceilSecond(t time.Time) time.Time { return t.Add(quota.Second - 1).Truncate(quota.Second).UTC() }

// slotsView has a recipient's blocked times and bookings.
type slotsView struct {
	Blocked  []blockedView `json:"blocked" doc:"The times at which nothing can be booked. A send exactly at from is allowed if from_open is true, and a send exactly at until is always allowed, unless another interval covers it."`
	Bookings []bookingView `json:"bookings"`
	NextFrom *string       `json:"next_from" format:"date-time" nullable:"true" doc:"Set if the answer ends early, because it would have more than 10,000 bookings or blocked intervals: repeat the request with this time as from. null: the answer is complete."`
}

// blockedView is a time span without a place.
type blockedView struct {
	From      *string  `json:"from" format:"date-time" nullable:"true" doc:"null: without beginning."`
	Until     *string  `json:"until" format:"date-time" nullable:"true" doc:"null: without end."`
	FromOpen  bool     `json:"from_open" doc:"This interval allows a send exactly at from."`
	UntilOpen bool     `json:"until_open" doc:"This interval allows a send exactly at until: always true."`
	Rules     []string `json:"rules" doc:"The rules without a place."`
}

// bookingView is a booked place.
type bookingView struct {
	ID     string `json:"id" format:"uuid"`
	SendAt string `json:"send_at" format:"date-time"`
	Status string `json:"status" enum:"scheduled,sending,sent"`
}

func (h *quotas) slots(c *rest.Call) error {
	var q quotaQuery
	slotsParams.ReadQuery(c.Request, &q, &c.Errors)
	who := h.subject(c, q.kind.Channel)
	from := cmp.Or(q.from, ceilSecond(c.Now()))
	until := cmp.Or(q.until, from.Add(defaultSpan))
	rest.CheckSpan(c, from, until, &c.Errors)
	if err := c.Ready(rest.SlotsBytes); err != nil {
		return err
	}
	slots, err := h.svc.Slots(c.Request.Context(), who, q.kind, from, until)
	if err != nil {
		return err
	}
	return c.Compute(func() error {
		return c.Answer(http.StatusOK, slotsView{Blocked: blockedViews(slots.Blocked), Bookings: rest.ViewsOf(slots.Bookings, bookingViewOf), NextFrom: rest.MaybeTime(slots.Next)})
	})
}

// blockedViews merges intervals with the same bounds.
func blockedViews(blocked []quota.Interval) []blockedView {
	type bounds struct {
		from, until time.Time
		closed      bool
	}
	at := map[bounds]int{}
	views := []blockedView{}
	for _, b := range blocked {
		i, known := at[bounds{b.From, b.Until, b.FromClosed}]
		if !known {
			i = len(views)
			at[bounds{b.From, b.Until, b.FromClosed}] = i
			views = append(views, blockedView{From: rest.MaybeTime(b.From), Until: rest.MaybeTime(b.Until), FromOpen: !b.FromClosed, UntilOpen: true})
		}
		if !slices.Contains(views[i].Rules, b.Rule.Name) {
			views[i].Rules = append(views[i].Rules, b.Rule.Name)
		}
	}
	return views
}
