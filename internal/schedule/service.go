package schedule

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/bulkhead"
	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/sms"
)

// Service serves callers' requests. It submits, moves, cancels and retries pushes; its parts serve the other subjects.
// It is safe for concurrent use.
type Service struct {
	*Planner
	*Quotas
	*Recipients
	*Suppressions
	*Records
	*horizonWaker

	store   pushStore
	cache   *quota.Cache
	metrics *submitMetrics
	cfg     Config
	now     func() time.Time
	caps    *capCounter
	submits *submitHistory
	bursts  *bursts
}

// Config configures a Service.
type Config struct {
	Policy     booking.Terms // of tenants without a policy of their own
	Channels   []string      // the first is the default
	DefaultTTL time.Duration // how long after its send time a push expires
	MaxHorizon time.Duration // how far ahead a push may be scheduled
	Horizon    time.Duration // how long before its send time a push's lane is armed
	Caps       push.Caps     // of tenants without caps of their own

	// Neighbours counts the tenants that make requests, so that one of several does not keep the processors busy with
	// recipients that have very many bookings; nil: each tenant counts as alone.
	Neighbours *bulkhead.Neighbours[uuid.UUID]

	// Computing limits concurrent rendering of templates; nil: no limit.
	Computing *bulkhead.Computing[uuid.UUID]

	// Shadows counts what shadow rules would have refused; nil: not counted.
	Shadows *Shadows

	// Refusals counts refused pushes; nil: not counted.
	Refusals *Refusals

	// Check returns what a channel's provider would certainly refuse; nil: no channel is checked.
	Check func(channel, to string, message json.RawMessage) invalid.FieldErrors

	// TextSize returns the size of the text that a channel would send, and whether it sends text messages; nil: none does.
	TextSize func(channel string, message json.RawMessage) (size sms.Size, is bool)

	// Own knows the channels of each tenant, which may be its own; nil: all have Channels and Check.
	Own OwnChannels
}

// serviceStore is the part of the store that the service uses, by subject.
type serviceStore interface {
	pushStore
	planStore
	peopleStore
	recordReader
	historyReader
}

// peopleStore stores what is known of recipients and of their addresses.
type peopleStore interface {
	recipientStore
	suppressionStore
}

// pushStore books, moves, cancels and reads pushes.
type pushStore interface {
	booker
	pushReader
	bookingReader
	suppressionReader
	usageStore
}

// booker changes bookings. A [booking.Decider] decides under the recipients' locks.
type booker interface {
	Book(ctx context.Context, o booking.Order) ([]booking.Decision, error)
	Reschedule(ctx context.Context, o booking.Order) (booking.Decision, error)
	Cancel(ctx context.Context, tenant, id uuid.UUID) (push.Push, error)
	CancelUnlessSent(ctx context.Context, tenant, id uuid.UUID) (push.Push, error)
}

// pushReader reads a tenant's pushes.
type pushReader interface {
	Push(ctx context.Context, tenant, id uuid.UUID) (push.Push, error)
	Keyed(ctx context.Context, tenant, key uuid.UUID) ([]booking.Keyed, error)
	List(ctx context.Context, tenant uuid.UUID, f push.Filter, after push.Position, limit int) (push.Page, error)
}

// New returns a service. now is the clock, usually time.Now.
func New(st serviceStore, cache *quota.Cache, wakes waker, metrics observer, now func() time.Time, cfg Config) *Service {
	caps, lanes := newCapCounter(st, now), &horizonWaker{wakes, cfg.Horizon}
	return &Service{
		Planner:      &Planner{st, cfg, now},
		Quotas:       &Quotas{st, cfg, now, newPermits(cfg.Neighbours)},
		Recipients:   &Recipients{st, cache, caps, lanes, cfg, now},
		Suppressions: &Suppressions{st, caps, cfg},
		Records:      &Records{st, st, cache, now},
		horizonWaker: lanes,

		store: st, cache: cache, metrics: &submitMetrics{metrics, booking.OrNone(cfg.Policy).Names()}, cfg: cfg, now: now,
		caps: caps, submits: newSubmitHistory(now), bursts: newBursts(),
	}
}

// Channels lists the names of a tenant's channels, the default first. Callers must not change the list.
func (s *Service) Channels(tenant uuid.UUID) []string { return s.cfg.channelsOf(tenant) }

// waker wakes workers for the lane of a recipient at a time, which is in from now. It does not wait.
type waker interface {
	Wake(recipientKey int64, at time.Time, in time.Duration)
}

// horizonWaker wakes lanes for pushes that are due within the horizon. Later pushes are counted by the lanes' owners in
// time.
type horizonWaker struct {
	waker   waker
	horizon time.Duration
}

// wake wakes workers for the lane of a push when it becomes due. If that is beyond the horizon, the lane's owner counts
// the push in time.
func (w *horizonWaker) wake(p *push.Push) {
	if p.Status != push.Scheduled {
		return
	}
	w.Wake(push.RecipientKey(p.Tenant, p.Recipient), p.NextAt, p.NextAt.Sub(p.UpdatedAt))
}

// Wake wakes workers for the lane of a recipient when a push is due at a time, which is in from now. It does nothing
// beyond the horizon.
func (w *horizonWaker) Wake(recipientKey int64, at time.Time, in time.Duration) {
	if in < w.horizon+margin {
		w.waker.Wake(recipientKey, at, in)
	}
}

// margin is the time that a commit may take: meanwhile, the send time may come within the horizon.
const margin = 5 * time.Second
