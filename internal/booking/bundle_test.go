package booking_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// noon is the time of all decisions here.
var noon = time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)

var (
	onePerMinute = quota.Policy{{Name: "minute", Limit: 1, Window: time.Minute}}
	twoPerHour   = quota.Policy{{Name: "hour", Limit: 2, Window: time.Hour}}
)

// bundle is a snapshot of a tenant at noon.
type bundle struct {
	views
	tenant   uuid.UUID
	existing []push.Push
	keyed    []booking.Keyed
}

// views are all bookings of all recipients.
type views map[quota.Recipient]*quota.View

func (v views) View(r quota.Recipient) *quota.View {
	if v[r] == nil {
		v[r] = &quota.View{Until: booking.EndOfTime}
	}
	return v[r]
}

func (v views) Done(quota.Recipient) {}

func setup(testing.TB) *bundle { return &bundle{views: views{}, tenant: uuid.New()} }

// decider returns a decider for the snapshot.
func (b *bundle) decider() *booking.Decider {
	return booking.NewDecider(booking.Snapshot{Now: noon, Views: b, Existing: b.existing, Keyed: b.keyed})
}

// push returns a push to a recipient, in after noon.
func (b *bundle) push(recipient string, in time.Duration) push.Push {
	at := noon.Add(in)
	return push.Push{Content: push.Content{Recipient: recipient}, ID: uuid.New(), Tenant: b.tenant, RequestedSendAt: at, SendAt: at, TTL: time.Hour}
}

// hold books existing pushes.
func (b *bundle) hold(recipient string, in ...time.Duration) (held []push.Push) {
	view := b.View(quota.Recipient{Tenant: b.tenant, ID: recipient})
	for _, d := range in {
		p := b.push(recipient, d)
		p.Status, p.NextAt, p.Gen, p.CreatedAt = push.Scheduled, p.SendAt, 1, noon.Add(-time.Hour)
		view.Timeline = view.Insert(quota.Booking{ID: p.ID, At: p.SendAt})
		held = append(held, p)
	}
	b.existing = append(b.existing, held...)
	return held
}

// bookings returns the bookings of a recipient, relative to noon.
func (b *bundle) bookings(recipient string) (in []time.Duration) {
	for _, held := range b.View(quota.Recipient{Tenant: b.tenant, ID: recipient}).Bookings() {
		in = append(in, held.At.Sub(noon))
	}
	return in
}

func outcomes(decisions []booking.Decision) (all []booking.Outcome) {
	for _, d := range decisions {
		all = append(all, d.Outcome)
	}
	return all
}
