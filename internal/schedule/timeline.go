package schedule

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// Event is something that has happened to a recipient.
type Event struct {
	At                time.Time
	Kind              EventKind
	Push              uuid.UUID // Nil: of a refusal
	Campaign          uuid.UUID // Nil: of none
	Channel, Category string
	SendAt            time.Time // for when it was booked, or moved to, or refused; zero: of other kinds
	Reason            string
}

// EventKind is a kind of event.
type EventKind string

// The kinds of events, in the order in which those of one moment happen.
const (
	Booked   EventKind = "booked"
	Refused  EventKind = "refused"
	Deferred EventKind = "deferred"
	Attempt  EventKind = "attempt"
	Sent     EventKind = "sent"
	Failed   EventKind = "failed"
	Canceled EventKind = "canceled"
	Expired  EventKind = "expired"
)

// EventKinds lists them.
var EventKinds = []EventKind{Booked, Refused, Deferred, Attempt, Sent, Failed, Canceled, Expired}

// MaxPast is how many pushes, and how many attempts, a timeline tells of.
const MaxPast = 5000

// Timeline returns what has happened to a recipient from one time until another, the oldest first; and whether that is all.
func (s *Service) Timeline(ctx context.Context, r quota.Recipient, from, until time.Time) (events []Event, all bool, err error) {
	pushes, attempts, err := s.store.History(ctx, r, from, until, MaxPast)
	if err != nil {
		return nil, false, fmt.Errorf("timeline: %w", err)
	}
	add := func(e Event) {
		if !e.At.Before(from) && e.At.Before(until) {
			events = append(events, e)
		}
	}
	for i := range pushes {
		pastOf(&pushes[i], add)
	}
	for _, a := range attempts {
		add(Event{At: a.StartedAt, Kind: Attempt, Push: a.Push, Campaign: a.Campaign, Channel: a.Channel, Category: a.Category, Reason: cmp.Or(a.Error, string(a.Outcome))})
	}
	for _, one := range s.kept(ctx, r) {
		add(one.Event)
	}
	page, err := s.store.CampaignRefusals(ctx, r.Tenant, push.RefusalFilter{Recipient: r.ID, From: from, Until: until}, push.RefusalPosition{}, MaxPast)
	if err != nil {
		return nil, false, fmt.Errorf("timeline: %w", err)
	}
	for i := range page.Refusals {
		add(eventOf(&page.Refusals[i]))
	}
	slices.SortStableFunc(events, func(a, b Event) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(slices.Index(EventKinds, a.Kind), slices.Index(EventKinds, b.Kind)))
	})
	return events, len(pushes) < MaxPast && len(attempts) < MaxPast && page.Next == nil, nil
}

// eventOf is the refusal of a campaign.
func eventOf(r *push.RefusalRecord) Event {
	reason := r.Reason
	if len(r.Rules) > 0 {
		reason = noPlace(r.Rules)
	}
	return Event{At: r.At, Kind: Refused, Campaign: r.Campaign, Channel: r.Channel, Category: r.Category, SendAt: r.RequestedSendAt, Reason: reason}
}

// noPlace says which rules have refused.
func noPlace(rules []string) string { return "no place: " + strings.Join(rules, ", ") }

// pastOf tells what has happened to a push, but for the attempts that have ended.
func pastOf(p *booking.Past, add func(Event)) {
	of := Event{Push: p.ID, Campaign: p.Campaign, Channel: p.Channel, Category: p.Category}
	tell := func(at time.Time, kind EventKind, sendAt time.Time, reason string) {
		e := of
		e.At, e.Kind, e.SendAt, e.Reason = at, kind, sendAt, reason
		add(e)
	}
	tell(p.CreatedAt, Booked, p.SendAt, "")
	if p.SendAt.After(p.RequestedSendAt) {
		tell(p.CreatedAt, Deferred, p.SendAt, "it was asked for at "+stamp(p.RequestedSendAt))
	}
	if !p.Started.IsZero() {
		tell(p.Started, Attempt, time.Time{}, "")
		return
	}
	switch p.Status {
	case push.Scheduled:
		if p.NextAt.After(p.SendAt) {
			tell(p.UpdatedAt, Deferred, p.NextAt, p.LastError)
		}
	case push.Sent, push.Failed, push.Canceled, push.Expired:
		tell(p.UpdatedAt, EventKind(p.Status), time.Time{}, p.LastError)
	}
}
