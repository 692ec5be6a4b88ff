package schedule

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/bulkhead"
	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// Service serves callers' requests. It is safe for concurrent use.
type Service struct {
	store   pushStore
	cache   *quota.Cache
	waker   waker
	log     *slog.Logger
	metrics observer
	cfg     Config
	rules   []string // names of the rules in the operator's file
	now     func() time.Time
	caps    *capCounter
	crowds  *permits
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
}

// pushStore is the part of the store that the service uses.
type pushStore interface {
	booker
	bookingReader
	usageStore
	recipientStore
	Push(ctx context.Context, tenant, id uuid.UUID) (push.Push, error)
	Keyed(ctx context.Context, tenant, key uuid.UUID) ([]booking.Keyed, error)
	Attributes(ctx context.Context, tenant uuid.UUID, ids []string) (map[string]json.RawMessage, error)
	List(ctx context.Context, tenant uuid.UUID, f push.Filter, after push.Position, limit int) (push.Page, error)
	recordReader
}

// booker changes bookings. A [booking.Decider] decides under the recipients' locks.
type booker interface {
	Book(ctx context.Context, o booking.Order) ([]booking.Decision, error)
	Reschedule(ctx context.Context, o booking.Order) (booking.Decision, error)
	CancelAt(ctx context.Context, tenant, id uuid.UUID, was time.Time) (push.Push, error)
}

// bookingReader reads a recipient's terms, and its bookings strictly between two times, without a lock: a few in a
// shared query (Glance), the first ones up to a maximum (Bookings), or all but some (Timeline).
type bookingReader interface {
	Terms(tenant uuid.UUID, file booking.Terms) booking.Terms
	Standing(ctx context.Context, r quota.Recipient, file booking.Terms) (booking.Standing, error)
	Standings(ctx context.Context, tenant uuid.UUID, ids []string, file booking.Terms) (booking.Terms, map[string]booking.Person, error)
	Glance(ctx context.Context, r quota.Recipient, file booking.Terms, from, until time.Time) (held []booking.Held, of booking.Standing, all bool, err error)
	Bookings(ctx context.Context, r quota.Recipient, from, until time.Time, most int, kinds bool) (held []booking.Held, complete time.Time, err error)
	Timeline(ctx context.Context, r quota.Recipient, from, until time.Time, without map[uuid.UUID]bool, kinds bool) (line quota.Timeline, complete time.Time, err error)
}

// waker wakes workers for the lane of a recipient at a time, which is in from now. It does not wait.
type waker interface {
	Wake(recipientKey int64, at time.Time, in time.Duration)
}

// observer counts metrics.
type observer interface {
	Submitted(outcome, rule string)
	CacheAnswered(state string)
}

// New returns a service. now is the clock, usually time.Now.
func New(st pushStore, cache *quota.Cache, wakes waker, log *slog.Logger, metrics observer, now func() time.Time, cfg Config) *Service {
	return &Service{
		store: st, cache: cache, waker: wakes, log: log, metrics: metrics, now: now, cfg: cfg, rules: booking.OrNone(cfg.Policy).Names(),
		caps: newCapCounter(st, now), crowds: newPermits(cfg.Neighbours), submits: newSubmitHistory(now), bursts: newBursts(),
	}
}

// Channels lists the names of the channels, the default first.
func (s *Service) Channels() []string { return s.cfg.Channels }

// terms returns a tenant's terms as of the last read.
func (s *Service) terms(tenant uuid.UUID) booking.Terms { return s.store.Terms(tenant, s.cfg.Policy) }

// wake wakes workers for the lane of a push when it becomes due. If that is beyond the horizon, the lane's owner counts
// the push in time.
func (s *Service) wake(p *push.Push) {
	if p.Status != push.Scheduled {
		return
	}
	s.Wake(push.RecipientKey(p.Tenant, p.Recipient), p.NextAt, p.NextAt.Sub(p.UpdatedAt))
}

// Wake wakes workers for the lane of a recipient when a push is due at a time, which is in from now. It does nothing
// beyond the horizon.
func (s *Service) Wake(recipientKey int64, at time.Time, in time.Duration) {
	if in < s.cfg.Horizon+margin {
		s.waker.Wake(recipientKey, at, in)
	}
}

// margin is the time that a commit may take: meanwhile, the send time may come within the horizon.
const margin = 5 * time.Second
