package schedule

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// Quotas answers questions about the quotas of recipients: by what bookings they are full, and when they are free.
type Quotas struct {
	store  bookingReader
	cfg    Config
	now    func() time.Time
	crowds *permits
}

// bookingReader reads a recipient's terms, and its bookings strictly between two times, without a lock: a few in a
// shared query (BookingsBetween), the first ones up to a maximum (Bookings), or all but some (Timeline).
type bookingReader interface {
	Terms(tenant uuid.UUID, file booking.Terms) booking.Terms
	Standing(ctx context.Context, r quota.Recipient, file booking.Terms) (booking.Standing, error)
	BookingsBetween(ctx context.Context, r quota.Recipient, file booking.Terms, from, until time.Time) (held []booking.Held, of booking.Standing, all bool, err error)
	Bookings(ctx context.Context, r quota.Recipient, from, until time.Time, most int, kinds bool) (held []booking.Held, complete time.Time, err error)
	Timeline(ctx context.Context, r quota.Recipient, from, until time.Time, without map[uuid.UUID]bool, kinds bool) (line quota.Timeline, complete time.Time, err error)
}

// terms returns a tenant's terms as of the last read.
func (q *Quotas) terms(tenant uuid.UUID) booking.Terms { return q.store.Terms(tenant, q.cfg.Policy) }

// Quota returns the usage of every rule for pushes of a kind to a recipient around a time, and whether one more send
// would be allowed then. An empty channel means the default channel. IT BOOKS NOTHING.
func (q *Quotas) Quota(ctx context.Context, r quota.Recipient, kind quota.Kind, at time.Time) ([]quota.Usage, *Answer, error) {
	x := newReading(r, nil)
	defer x.permit.end()
	kind.Channel = cmp.Or(kind.Channel, q.cfg.firstOf(r.Tenant))
	d, err := q.decide(ctx, x, kind, at, 2)
	if err != nil {
		return nil, nil, fmt.Errorf("recipient quota: %w", err)
	}
	return x.of.Policy(kind).Usage(x.view.Timeline, at), q.answer(Refusal{Recipient: r.ID, SendAt: at, Decision: d}, x.of.Person.OptOuts.Of(kind)), nil
}

// usage returns the usage of every rule around a push.
func (q *Quotas) usage(ctx context.Context, p *push.Push) ([]quota.Usage, error) {
	x := newReading(quota.Recipient{Tenant: p.Tenant, ID: p.Recipient}, nil)
	defer x.permit.end()
	if err := q.read(ctx, x, p.SendAt, 1); err != nil {
		return nil, err
	}
	return x.of.Policy(booking.KindOf(p)).Usage(x.view.Timeline, p.SendAt), nil
}

// answer adds the next and the previous free time, except for a recipient who has opted out: no time is free then.
func (q *Quotas) answer(r Refusal, out booking.OptOuts) *Answer {
	if q.offer(&r.Decision); out.Any() {
		r.Next, r.Previous = time.Time{}, time.Time{}
	}
	return &Answer{Refusal: r, OptedOut: out}
}

// offer removes a next free time that is beyond the horizon.
func (q *Quotas) offer(d *quota.Decision) {
	if d.Next.After(q.now().Add(q.cfg.MaxHorizon).Truncate(quota.Second)) {
		d.Next = time.Time{}
	}
}

// refuse explains the refusal of a single push.
func (q *Quotas) refuse(ctx context.Context, p *push.Push, without map[uuid.UUID]bool, v booking.Decision) error {
	x := newReading(quota.Recipient{Tenant: p.Tenant, ID: p.Recipient}, without)
	defer x.permit.end()
	return q.refusal(ctx, x, booking.KindOf(p), p.SendAt, v)
}

// refusal explains the refusal of a draft. The decision of Postgres under the lock stands. If it did not search far
// enough for the free times, they are searched again.
func (q *Quotas) refusal(ctx context.Context, x *reading, kind quota.Kind, at time.Time, v booking.Decision) error {
	d := v.Quota
	if !v.Complete {
		x.add(v.Granted)
		wide, err := q.decide(ctx, x, kind, at, 8)
		if err != nil {
			return fmt.Errorf("explain refusal: %w", err)
		}
		d.Next, d.Previous = wide.Next, wide.Previous
	}
	q.offer(&d)
	return &Refusal{Recipient: x.who.ID, SendAt: at, Decision: d}
}
