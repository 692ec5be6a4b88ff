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

// Service does what callers ask for. It is safe for concurrent use.
type Service struct {
	store   pushStore
	cache   *quota.Cache
	waker   waker
	log     *slog.Logger
	metrics observer
	cfg     Config
	rules   []string // names of the file's
	now     func() time.Time
	caps    *capCounter
	crowds  *turns
	recent  *recent
	shares  *shares
}

// Config is what a Service has to know.
type Config struct {
	Policy     booking.Terms // of tenants without a policy of their own
	Channels   []string      // the first is the default
	DefaultTTL time.Duration // how long after its send time a push expires
	MaxHorizon time.Duration // how far ahead a push may be scheduled
	Horizon    time.Duration // how long before its time a push's lane is armed
	Caps       push.Caps     // of every tenant that has none of its own

	// Neighbours are told of every tenant that asks for something, so that one of several does not keep the processors
	// busy by looking at recipients with very many bookings; nil: each is taken to be alone.
	Neighbours *bulkhead.Neighbours[uuid.UUID]

	// Computing has turns at rendering templates; nil: there is always one.
	Computing *bulkhead.Computing[uuid.UUID]

	// Shadows counts what shadow rules would have refused; nil: nobody does.
	Shadows *Shadows

	// Refusals counts pushes that were refused; nil: nobody does.
	Refusals *Refusals

	// Check says what the provider behind a channel would surely refuse; nil: nothing is known of any.
	Check func(channel, to string, message json.RawMessage) invalid.FieldErrors
}

// pushStore is what the service needs of Postgres.
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

// booker changes what is booked. Its decisions are those of a [booking.Decider] under the recipients' locks.
type booker interface {
	Book(ctx context.Context, o booking.Order) ([]booking.Decision, error)
	Reschedule(ctx context.Context, o booking.Order) (booking.Decision, error)
	CancelAt(ctx context.Context, tenant, id uuid.UUID, was time.Time) (push.Push, error)
}

// bookingReader reads the bookings of a recipient strictly between two times, without a lock: a few together with
// others (Glance), the first ones until there are too many (Bookings), or all but some (Timeline). It also knows under which
// terms they stand.
type bookingReader interface {
	Terms(tenant uuid.UUID, file booking.Terms) booking.Terms
	Standing(ctx context.Context, r quota.Recipient, file booking.Terms) (booking.Standing, error)
	Standings(ctx context.Context, tenant uuid.UUID, ids []string, file booking.Terms) (booking.Terms, map[string]booking.Person, error)
	Glance(ctx context.Context, r quota.Recipient, file booking.Terms, from, until time.Time) (held []booking.Held, of booking.Standing, all bool, err error)
	Bookings(ctx context.Context, r quota.Recipient, from, until time.Time, most int, kinds bool) (held []booking.Held, complete time.Time, err error)
	Timeline(ctx context.Context, r quota.Recipient, from, until time.Time, without map[uuid.UUID]bool, kinds bool) (line quota.Timeline, complete time.Time, err error)
}

// waker has the lane of a recipient looked at when something becomes due, which is in so long. It does not wait.
type waker interface {
	Wake(recipientKey int64, at time.Time, in time.Duration)
}

// observer is told what happened, for the metrics.
type observer interface {
	Submitted(outcome, rule string)
	CacheAnswered(state string)
}

// New returns a service on top of its parts. now is the clock, usually time.Now.
func New(st pushStore, cache *quota.Cache, wakes waker, log *slog.Logger, metrics observer, now func() time.Time, cfg Config) *Service {
	return &Service{
		store: st, cache: cache, waker: wakes, log: log, metrics: metrics, now: now, cfg: cfg, rules: booking.OrNone(cfg.Policy).Names(),
		caps: newCapCounter(st, now), crowds: newTurns(cfg.Neighbours), recent: newRecent(now), shares: newShares(),
	}
}

// Channels lists the names of the channels, the default first.
func (s *Service) Channels() []string { return s.cfg.Channels }

// terms are those of a tenant as they were seen last.
func (s *Service) terms(tenant uuid.UUID) booking.Terms { return s.store.Terms(tenant, s.cfg.Policy) }

// wake has workers look at the lane of a push when it becomes due. One that is due beyond the horizon is counted by the
// lane's owner in time.
func (s *Service) wake(p *push.Push) {
	if p.Status != push.Scheduled {
		return
	}
	s.Wake(push.RecipientKey(p.Tenant, p.Recipient), p.NextAt, p.NextAt.Sub(p.UpdatedAt))
}

// Wake has workers look at the lane of a recipient of whom a push is due at a time, in so long, unless that is beyond the
// horizon.
func (s *Service) Wake(recipientKey int64, at time.Time, in time.Duration) {
	if in < s.cfg.Horizon+margin {
		s.waker.Wake(recipientKey, at, in)
	}
}

// margin is how long what is booked may take to be committed: meanwhile its moment may come within the horizon.
const margin = 5 * time.Second
