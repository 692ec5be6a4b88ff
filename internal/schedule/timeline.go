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
	Push              uuid.UUID `json:",omitzero"` // Nil: of a refusal
	Campaign          uuid.UUID `json:",omitzero"` // Nil: of none
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
	of := make(map[uuid.UUID]*booking.Past, len(pushes))
	for i := range pushes {
		pastOf(&pushes[i], add)
		of[pushes[i].ID] = &pushes[i]
	}
	for _, a := range attempts {
		e := Event{At: a.StartedAt, Kind: Attempt, Push: a.Push, Campaign: a.Campaign, Channel: a.Channel, Category: a.Category, Reason: cmp.Or(a.Error, string(a.Outcome))}
		add(e)
		if p := of[a.Push]; p != nil && a.Outcome != push.Delivered && a.Attempt <= lastWait(p) { // it was to be tried again
			e.At, e.Kind = a.EndedAt, Deferred
			if a.Attempt == lastWait(p) && p.NextAt.After(p.SendAt) {
				e.SendAt = p.NextAt
			}
			add(e)
		}
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
		reason = refusedBy(r.Rules)
	}
	return Event{At: r.At, Kind: Refused, Campaign: r.Campaign, Channel: r.Channel, Category: r.Category, SendAt: r.RequestedSendAt, Reason: reason}
}

// refusedBy says which rules have refused.
func refusedBy(rules []string) string { return "no place: " + strings.Join(rules, ", ") }

// heldReason says why a push waited when it was due.
func heldReason(by string) string {
	switch by {
	case "":
		return "no place when it was due"
	case push.PausedCampaign:
		return "its campaign was paused"
	}
	return "no place when it was due: " + by
}

// pastOf tells what has happened to a push, but for the attempts that have ended, and what followed from them.
func pastOf(p *booking.Past, add func(Event)) {
	of := Event{Push: p.ID, Campaign: p.Campaign, Channel: p.Channel, Category: p.Category}
	tell := func(at time.Time, kind EventKind, sendAt time.Time, reason string) {
		e := of
		e.At, e.Kind, e.SendAt, e.Reason = at, kind, sendAt, reason
		add(e)
	}
	ended, waited := p.Status != push.Scheduled, p.NextAt.After(p.SendAt)
	tell(p.CreatedAt, Booked, p.SendAt, "")
	if p.SendAt.After(p.RequestedSendAt) {
		at := p.CreatedAt
		if !ended && !waited && p.Attempts == 0 { // a later change is a move
			at = p.UpdatedAt
		}
		tell(at, Deferred, p.SendAt, "it was asked for at "+stamp(p.RequestedSendAt))
	}
	switch {
	case !p.HeldSince.IsZero():
		tell(p.HeldSince, Deferred, p.HeldUntil, heldReason(p.HeldBy))
	case waited && lastWait(p) == 0:
		at := p.UpdatedAt
		if ended { // since then it has changed; it was due at its send time
			at = later(p.CreatedAt, p.SendAt)
		}
		tell(at, Deferred, p.NextAt, heldReason(""))
	}
	if !p.Started.IsZero() {
		tell(p.Started, Attempt, time.Time{}, "")
	}
	if ended {
		tell(p.UpdatedAt, EventKind(p.Status), time.Time{}, p.LastError)
	}
}

// later returns the later one of two times.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// lastWait returns the attempt after which a push waited for the last time; 0: after none.
func lastWait(p *booking.Past) int {
	if p.Attempts > 0 && (p.Status == push.Sent || p.Status == push.Failed) {
		return p.Attempts - 1 // it has ended with the last one
	}
	return p.Attempts
}
