package httpapi

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sendquota/sendquota/internal/quota"
)

// recipientView is how full a recipient's quota is.
type recipientView struct {
	Recipient       string      `json:"recipient"`
	At              string      `json:"at" format:"date-time"`
	Rules           []usageView `json:"rules"`
	Allowed         bool        `json:"allowed" doc:"One more send at that time would find a place."`
	NextAvailableAt *string     `json:"next_available_at" format:"date-time" nullable:"true" doc:"The first free time from then on; null if there is none."`
}

// recipientQuota says how full every rule is for a recipient around a time.
func (a *api) recipientQuota(c *call) error {
	var bad faults
	q := readQuery(c.r, &bad, "at", "channel", "category")
	who := a.subject(c, q, &bad)
	at := ceilSecond(q.time("at", a.now()))
	if err := bad.err(); err != nil {
		return err
	}
	usage, d, err := a.svc.Quota(c.r.Context(), who, at)
	if err != nil {
		return err
	}
	return a.answer(c.w, http.StatusOK, recipientView{
		Recipient: who.ID, At: stamp(at), Rules: usageViews(usage), Allowed: d.Allowed(), NextAvailableAt: maybe(d.Next),
	})
}

// subject reads whose quota is meant, and for which channel and category.
func (a *api) subject(c *call, q query, bad *faults) quota.Recipient {
	id := c.param("id")
	if message := unfit(id, 1, maxRecipient); message != "" {
		bad.add("path.id", message, shown(strings.ToValidUTF8(id, "\uFFFD")))
	}
	if channel := q.text("channel", maxChannel); channel != "" && !slices.Contains(a.svc.Channels(), channel) {
		q.bad("channel", "unknown channel; there are: "+strings.Join(a.svc.Channels(), ", "), channel)
	}
	q.text("category", maxCategory)
	return quota.Recipient{Tenant: c.caller.Tenant, ID: id}
}

// ceilSecond rounds up to the resolution of send times.
func ceilSecond(t time.Time) time.Time {
	if down := t.Truncate(quota.Second); down.Before(t) {
		return down.Add(quota.Second).UTC()
	}
	return t.UTC()
}

const (
	defaultSpan = 24 * time.Hour
	maxSpan     = 400 * 24 * time.Hour
)

// slotsView is the picture of a recipient's time.
type slotsView struct {
	Blocked  []blockedView `json:"blocked" doc:"Where nothing can be booked. The intervals are open at both ends: a send exactly at from or until is legal, where no other interval covers it."`
	Bookings []bookingView `json:"bookings"`
	NextFrom *string       `json:"next_from" format:"date-time" nullable:"true" doc:"Where the picture ends early, because it would show more than 10,000 bookings or blocked intervals: ask again with from at this time. null: it is whole."`
}

// blockedView is a stretch of time without a place.
type blockedView struct {
	From  *string  `json:"from" format:"date-time" nullable:"true" doc:"null: without beginning."`
	Until *string  `json:"until" format:"date-time" nullable:"true" doc:"null: without end."`
	Rules []string `json:"rules" doc:"The rules that have no place left."`
}

// bookingView is a place that is taken.
type bookingView struct {
	ID     string `json:"id" format:"uuid"`
	SendAt string `json:"send_at" format:"date-time"`
	Status string `json:"status" enum:"scheduled,sending,sent"`
}

// slots shows a recipient's bookings and blocked intervals.
func (a *api) slots(c *call) error {
	var bad faults
	q := readQuery(c.r, &bad, "from", "until", "channel", "category")
	who := a.subject(c, q, &bad)
	from := q.time("from", ceilSecond(a.now()))
	until := q.time("until", from.Add(defaultSpan))
	if given := q.values.Get("until"); given != "" && len(bad.list) == 0 {
		switch {
		case !until.After(from):
			q.bad("until", "must be after from, "+stamp(from), given)
		case until.Sub(from) > maxSpan:
			q.bad("until", fmt.Sprintf("must be at most %d days after from, %s", int(maxSpan.Hours()/24), stamp(from)), given)
		}
	}
	if err := bad.err(); err != nil {
		return err
	}
	if err := c.reserve(slotsBytes); err != nil {
		return err
	}
	slots, err := a.svc.Slots(c.r.Context(), who, from, until)
	if err != nil {
		return err
	}
	return c.compute(func() error {
		v := slotsView{Blocked: blockedViews(slots.Blocked), Bookings: make([]bookingView, len(slots.Bookings)), NextFrom: maybe(slots.Next)}
		for i, h := range slots.Bookings {
			v.Bookings[i] = bookingView{ID: h.ID.String(), SendAt: stamp(h.At), Status: string(h.Status)}
		}
		return a.answer(c.w, http.StatusOK, v)
	})
}

// blockedViews merges intervals of the same bounds into one.
func blockedViews(blocked []quota.Interval) []blockedView {
	type bounds struct{ from, until time.Time }
	at := map[bounds]int{}
	views := []blockedView{}
	for _, b := range blocked {
		i, known := at[bounds{b.From, b.Until}]
		if !known {
			i = len(views)
			at[bounds{b.From, b.Until}] = i
			views = append(views, blockedView{From: maybe(b.From), Until: maybe(b.Until)})
		}
		if !slices.Contains(views[i].Rules, b.Rule.Name) {
			views[i].Rules = append(views[i].Rules, b.Rule.Name)
		}
	}
	return views
}

func recipientQuotaDoc(s *spec) *huma.Operation {
	return &huma.Operation{
		OperationID: "recipient-quota", Method: http.MethodGet, Path: "/v1/recipients/{id}/quota", Tags: []string{tagQuota},
		Summary:     "See how full a recipient's quota is",
		Description: "For every rule: the sends in the fullest window that contains the time, and what remains.",
		Parameters: []*huma.Param{
			s.recipient(), s.time("at", "The time that is meant, rounded up to a second. Default: now."),
			s.query("channel", "The channel of the send that is thought of.", "push"), s.query("category", "Its category.", "marketing"),
		},
		Responses: s.responses(http.StatusOK, "The recipient's quota.", recipientView{}, exampleRecipient(), invalidRequest),
	}
}

func slotsDoc(s *spec) *huma.Operation {
	return &huma.Operation{
		OperationID: "recipient-slots", Method: http.MethodGet, Path: "/v1/recipients/{id}/slots", Tags: []string{tagQuota},
		Summary:     "See a recipient's free and blocked times",
		Description: "The bookings in [from, until] and the blocked intervals that overlap it, at most 400 days.",
		Parameters: []*huma.Param{
			s.recipient(), s.time("from", "Default: now."), s.time("until", "Default: 24 hours after from."),
			s.query("channel", "The channel of the send that is thought of.", "push"), s.query("category", "Its category.", "marketing"),
		},
		Responses: s.responses(http.StatusOK, "The recipient's time.", slotsView{}, exampleSlots(), invalidRequest),
	}
}
