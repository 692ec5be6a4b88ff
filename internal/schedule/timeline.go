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
	"github.com/sendquota/sendquota/internal/record"
)

// Event is an event in the history of a recipient.
type Event struct {
	At                time.Time
	Kind              EventKind
	Push              uuid.UUID `json:",omitzero"` // Nil for a refusal
	Campaign          uuid.UUID `json:",omitzero"` // Nil without a campaign
	Channel, Category string
	SendAt            time.Time // time of the booking, move or refusal; zero for other kinds
	Reason            string
}

// EventKind is a kind of event.
type EventKind string

// The kinds of events, in the order of simultaneous events.
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

// EventKinds lists the kinds.
var EventKinds = []EventKind{Booked, Refused, Deferred, Attempt, Sent, Failed, Canceled, Expired}

// MaxPast is the maximum number of pushes, and of attempts, in a timeline.
const MaxPast = 5000

// Timeline returns the events of a recipient in [from, until), the oldest first, and whether these are all.
func (rs *Records) Timeline(ctx context.Context, r quota.Recipient, from, until time.Time) (events []Event, all bool, err error) {
	pushes, attempts, err := rs.history.History(ctx, r, from, until, MaxPast)
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
		if p := of[a.Push]; p != nil && a.Outcome != push.Delivered && a.Attempt <= lastWait(p) { // a retry followed
			e.At, e.Kind = a.EndedAt, Deferred
			if a.Attempt == lastWait(p) && p.NextAt.After(p.SendAt) {
				e.SendAt = p.NextAt
			}
			add(e)
		}
	}
	for _, one := range rs.kept(ctx, r) {
		add(one.Event)
	}
	page, err := rs.store.CampaignRefusals(ctx, r.Tenant, record.RefusalFilter{Recipient: r.ID, From: from, Until: until}, record.RefusalPosition{}, MaxPast)
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

// eventOf returns the event of a campaign's refusal.
func eventOf(r *record.Refusal) Event {
	reason := r.Reason
	if len(r.Rules) > 0 {
		reason = refusedBy(r.Rules)
	}
	return Event{At: r.At, Kind: Refused, Campaign: r.Campaign, Channel: r.Channel, Category: r.Category, SendAt: r.RequestedSendAt, Reason: reason}
}

// refusedBy returns the reason of a refusal by rules.
func refusedBy(rules []string) string { return "no place: " + strings.Join(rules, ", ") }

// heldReason returns why a push waited although it was due.
func heldReason(by string) string {
	switch by {
	case "":
		return "no place when it was due"
	case push.PausedCampaign:
		return "its campaign was paused"
	}
	if scope, paused := strings.CutPrefix(by, push.PausedBy); paused {
		return "sending was paused: " + scope
	}
	return "no place when it was due: " + by
}

// pastOf adds the events of a push, except its finished attempts and the retries that followed them.
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
		if ended { // it changed since then; it was due at its send time
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

// later returns the later of two times.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// lastWait returns the number of the attempt after which a push last waited; 0 if it never did.
func lastWait(p *booking.Past) int {
	if p.Attempts > 0 && (p.Status == push.Sent || p.Status == push.Failed) {
		return p.Attempts - 1 // it ended with the last attempt
	}
	return p.Attempts
}
