package schedule

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/bulkhead"
	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// armAhead is how soon a push must be due for its submitter to put its wake-up into the queue. All others wait for the
// promoter, which looks every second. If the submitter dies before, or Redis does not answer, the promoter does it when
// three times this has passed, which is no longer than an ArmLease.
const armAhead = 5 * time.Second

func (s *Service) armAhead() time.Duration { return min(armAhead, s.cfg.ArmLease/3) }

// armPatience is how long a submitter waits for the queue. The push is booked by then: its caller must not wait for a
// Redis that does not answer.
const armPatience = 300 * time.Millisecond

// Where the queue is slow, because thousands of wake-ups are put into it at once, arming goes on behind the answer: for
// so long, and for so many requests at a time of all tenants and of one.
const (
	armLater       = 5 * time.Second
	allArmLater    = 64
	tenantArmLater = 32
)

// Service does what callers ask for. It is safe for concurrent use.
type Service struct {
	store   pushStore
	cache   *quota.Cache
	queue   armer
	log     *slog.Logger
	metrics observer
	cfg     Config
	now     func() time.Time
	caps    *capCounter
	crowds  *turns
	recent  *recent
	later   *bulkhead.Bulkhead[uuid.UUID] // of requests whose wake-ups are armed behind their answers
}

// Config is what a Service has to know.
type Config struct {
	Policy     quota.Policy
	Channels   []string      // the first is the default
	DefaultTTL time.Duration // how long after its send time a push expires
	MaxHorizon time.Duration // how far ahead a push may be scheduled
	ArmLease   time.Duration // how long a wake-up is believed to be in the queue
	Caps       push.Caps     // of every tenant that has none of its own

	// Neighbours are told of every tenant that asks for something, so that one of several does not keep the processors
	// busy by looking at recipients with very many bookings; nil: each is taken to be alone.
	Neighbours *bulkhead.Neighbours[uuid.UUID]

	// Check says what the provider behind a channel would surely refuse; nil: nothing is known of any.
	Check func(channel, to string, message json.RawMessage) invalid.FieldErrors
}

// pushStore is what the service needs of Postgres.
type pushStore interface {
	booker
	bookingReader
	usageStore
	Push(ctx context.Context, tenant, id uuid.UUID) (push.Push, error)
	List(ctx context.Context, tenant uuid.UUID, f push.Filter, after push.Position, limit int) (push.Page, error)
}

// booker changes what is booked. Its decisions are those of a [booking.Decider] under the recipients' locks.
type booker interface {
	Book(ctx context.Context, o booking.Order) ([]booking.Decision, error)
	Reschedule(ctx context.Context, o booking.Order) (booking.Decision, error)
	Cancel(ctx context.Context, tenant, id uuid.UUID) (push.Push, error)
}

// bookingReader reads the bookings of a recipient strictly between two times, without a lock: a few together with
// others (Glance), the first ones until there are too many (Bookings), or all but some (Timeline).
type bookingReader interface {
	Glance(ctx context.Context, r quota.Recipient, from, until time.Time) (held []booking.Held, all bool, err error)
	Bookings(ctx context.Context, r quota.Recipient, from, until time.Time, most int) (held []booking.Held, complete time.Time, err error)
	Timeline(ctx context.Context, r quota.Recipient, from, until time.Time, without map[uuid.UUID]bool) (line quota.Timeline, complete time.Time, err error)
}

// armer puts wake-ups into the queue.
type armer interface {
	Arm(ctx context.Context, wakeUps []push.WakeUp) error
}

// observer is told what happened, for the metrics.
type observer interface {
	Submitted(outcome, rule string)
	CacheAnswered(state string)
}

// New returns a service on top of its parts. now is the clock, usually time.Now.
func New(st pushStore, cache *quota.Cache, queue armer, log *slog.Logger, metrics observer, now func() time.Time, cfg Config) *Service {
	return &Service{store: st, cache: cache, queue: queue, log: log, metrics: metrics, now: now, cfg: cfg, caps: newCapCounter(st, now), crowds: newTurns(cfg.Neighbours), recent: newRecent(now), later: bulkhead.New[uuid.UUID](allArmLater, tenantArmLater)}
}

// Channels lists the names of the channels, the default first.
func (s *Service) Channels() []string { return s.cfg.Channels }

// arm puts the wake-ups of pushes that are due at once into the queue. The caller waits for that only for a moment. Where
// it fails, the promoter does it a few seconds later.
func (s *Service) arm(ctx context.Context, pushes ...push.Push) {
	var wakeUps []push.WakeUp
	for _, p := range pushes {
		if !p.ArmedUntil.IsZero() {
			wakeUps = append(wakeUps, push.WakeUp{Push: p.ID, Tenant: p.Tenant, Gen: p.Gen, RecipientKey: push.RecipientKey(p.Tenant, p.Recipient), Channel: p.Channel, At: p.NextAt, In: p.NextAt.Sub(p.UpdatedAt)})
		}
	}
	if len(wakeUps) == 0 {
		return
	}
	err := s.armWithin(ctx, armPatience, wakeUps)
	if errors.Is(err, context.DeadlineExceeded) {
		if loan, lent := s.later.TryAcquire(wakeUps[0].Tenant, 1); lent {
			go func() {
				defer loan.Release()
				s.armed(ctx, wakeUps, s.armWithin(ctx, armLater, wakeUps))
			}()
			return
		}
	}
	s.armed(ctx, wakeUps, err)
}

func (s *Service) armWithin(ctx context.Context, d time.Duration, wakeUps []push.WakeUp) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), d)
	defer cancel()
	return s.queue.Arm(ctx, wakeUps)
}

func (s *Service) armed(ctx context.Context, wakeUps []push.WakeUp, err error) {
	if err != nil {
		s.log.WarnContext(ctx, "wake-ups not armed; the promoter will", "pushes", len(wakeUps), "error", err)
	}
}
