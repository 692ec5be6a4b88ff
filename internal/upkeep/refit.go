package upkeep

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/loop"
	"github.com/sendquota/sendquota/internal/policy"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// RefitterConfig configures a refitter.
type RefitterConfig struct {
	Policy     booking.Terms // of tenants without a policy of their own
	MaxHorizon time.Duration // how far ahead a push may be scheduled
}

// A refitter waits up to settleTime for transactions that may have decided by an older policy, and checks every
// settleEvery. Each transaction of this service ends within that time; one that holds a lock for longer is not ours.
const (
	settleTime  = 10 * time.Second
	settleEvery = 20 * time.Millisecond
)

// rememberedRecipients bounds the recipients that a refitter remembers as done. It repeats others, which changes
// nothing.
const rememberedRecipients = 200_000

// refitter applies changes of policies to existing bookings.
type refitter struct {
	operations operationStore
	bookings   refitStore
	cache      *quota.Cache
	waker      waker
	log        *slog.Logger
	cfg        RefitterConfig
	worker     uuid.UUID
	turns      loop.RoundRobin[uuid.UUID, booking.Refitting]

	began bool // rechecked the pushes that the operator's file had put off: the file may have changed since

	operation uuid.UUID // the operation that adapted belongs to
	adapted   map[string]bool
}

// operationStore takes operations and records their progress.
type operationStore interface {
	TakeOperation(ctx context.Context, worker uuid.UUID, except []uuid.UUID) (*booking.Refitting, error)
	Deciders(ctx context.Context) ([]string, error)
	SettleOperation(ctx context.Context, r *booking.Refitting) error
	FinishRefitPage(ctx context.Context, r *booking.Refitting, p booking.RefitPage) error
}

// refitStore adapts existing bookings to the policy in force.
type refitStore interface {
	RecheckPutOff(ctx context.Context, r *booking.Refitting) (booking.Rechecked, error)
	RecheckFile(ctx context.Context) error
	RefitPage(ctx context.Context, r *booking.Refitting) (booking.RefitPage, error)
	Refit(ctx context.Context, r *booking.Refitting, recipient string, file booking.Terms, latest time.Time) (booking.Refitted, error)
}

// NewRefitter returns a loop that applies changes of policies. Page by page, it makes pushes due again that a rule had
// put off. If the change also applies to existing bookings, it then adapts these, one recipient per transaction. Every
// worker runs the loop. One worker at a time has an operation; after a crash another worker continues it, and repeating
// a step changes nothing. wakes is the schedule's, which ignores wakes beyond the horizon.
func NewRefitter(st interface {
	operationStore
	refitStore
}, cache *quota.Cache, wakes waker, log *slog.Logger, cfg RefitterConfig) loop.Loop {
	r := &refitter{operations: st, bookings: st, cache: cache, waker: wakes, log: log, cfg: cfg, worker: uuid.New()}
	r.turns.Owner = func(op *booking.Refitting) uuid.UUID { return op.Tenant }
	r.turns.Take = func(ctx context.Context, except []uuid.UUID) (*booking.Refitting, error) {
		return st.TakeOperation(ctx, r.worker, except)
	}
	return loop.Loop{Name: "refit", Interval: time.Second, Log: log, Pass: r.pass}
}

// pass does one page of an operation.
func (r *refitter) pass(ctx context.Context) (full bool, err error) {
	if !r.began {
		if err := r.bookings.RecheckFile(ctx); err != nil {
			return false, err
		}
		r.began = true
	}
	op, err := r.turns.Next(ctx)
	if err != nil || op == nil {
		return false, err
	}
	if err = r.step(ctx, op); errors.Is(err, booking.ErrReplaced) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("operation %s: %w", op.ID, err)
	}
	return true, nil
}

func (r *refitter) step(ctx context.Context, op *booking.Refitting) error {
	if !op.Settled {
		if err := r.settle(ctx); err != nil {
			return err
		}
		if err := r.operations.SettleOperation(ctx, op); err != nil {
			return err
		}
	}
	again, err := r.bookings.RecheckPutOff(ctx, op)
	now := time.Now()
	for _, key := range again.Recipients {
		r.waker.Wake(key, now, 0)
	}
	if err != nil || again.More {
		return err
	}
	if op.Apply == policy.NewOnly {
		return r.operations.FinishRefitPage(ctx, op, booking.RefitPage{Next: op.After, Last: true})
	}
	page, err := r.bookings.RefitPage(ctx, op)
	if err != nil {
		return err
	}
	if r.operation != op.ID || len(r.adapted) > rememberedRecipients {
		r.operation, r.adapted = op.ID, map[string]bool{}
	}
	for _, recipient := range page.Recipients {
		if r.adapted[recipient] {
			continue
		}
		if err := r.recipient(ctx, op, recipient); err != nil {
			return err
		}
		r.adapted[recipient] = true
	}
	if err := r.operations.FinishRefitPage(ctx, op, page); err != nil {
		return err
	}
	if page.Last {
		r.log.InfoContext(ctx, "policy change applied to existing bookings", "tenant", op.Tenant, "operation", op.ID, "version", op.Version)
	}
	return nil
}

// settle waits until the transactions have ended that may have decided by an older policy.
func (r *refitter) settle(ctx context.Context) error {
	before, err := r.operations.Deciders(ctx)
	for until := time.Now().Add(settleTime); err == nil && len(before) > 0 && time.Now().Before(until); {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(settleEvery):
		}
		var now []string
		now, err = r.operations.Deciders(ctx)
		before = slices.DeleteFunc(before, func(one string) bool { return !slices.Contains(now, one) })
	}
	return err
}

// recipient adapts all bookings of a recipient.
func (r *refitter) recipient(ctx context.Context, op *booking.Refitting, recipient string) error {
	latest := time.Now().UTC().Add(r.cfg.MaxHorizon).Truncate(quota.Second)
	for {
		done, err := r.bookings.Refit(ctx, op, recipient, r.cfg.Policy, latest)
		if err != nil {
			return err
		}
		if len(done.Moved)+done.Canceled > 0 {
			r.cache.Forget(quota.Recipient{Tenant: op.Tenant, ID: recipient})
		}
		for i := range done.Moved {
			p := &done.Moved[i]
			r.waker.Wake(push.RecipientKey(p.Tenant, p.Recipient), p.NextAt, p.NextAt.Sub(p.UpdatedAt))
		}
		if !done.More {
			return nil
		}
	}
}
