package bulk

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/schedule"
	"github.com/sendquota/sendquota/internal/store"
)

const (
	// MaxRunning is how many bulk changes of a tenant may be under way.
	MaxRunning = 5
	// maxCounted is how many pushes are looked at to count those that a change would be about.
	maxCounted = 100_000
	// sampled is how many moves are tried to estimate how many are refused.
	sampled = 50
)

// Service does what callers ask for. It is safe for concurrent use. Another tenant's bulk change is [push.ErrNotFound] everywhere.
type Service struct {
	reads
	store  *store.Store
	pushes pushes
}

// reads is the part of the store that the API uses as it is.
type reads interface {
	BulkChange(ctx context.Context, tenant, id uuid.UUID) (push.BulkChange, error)
	BulkChanges(ctx context.Context, tenant uuid.UUID, after push.BulkPosition, limit int) (push.BulkPage, error)
	BulkRefused(ctx context.Context, tenant, id uuid.UUID, after push.Position, limit int) (push.BulkRefusedPage, error)
	CancelBulkChange(ctx context.Context, tenant, id uuid.UUID) (push.BulkChange, error)
}

// pushes cancels and moves one push.
type pushes interface {
	CancelAt(ctx context.Context, tenant, id uuid.UUID, was time.Time) (push.Push, error)
	Reschedule(ctx context.Context, tenant, id uuid.UUID, to schedule.When, o schedule.Options) (schedule.Result, error)
}

// New returns the bulk changes in a store.
func New(st *store.Store, p pushes) *Service { return &Service{st, st, p} }

// Key is the Idempotency-Key of a request; the zero value is none.
type Key struct {
	Text string
	Hash []byte // of the request
}

// Create makes a bulk change, or finds the one that an earlier request with the same key has made, whatever is wrong with it now. Its
// errors are what is wrong, [push.ErrTooManyBulkChanges] and [push.ErrKeyReused].
func (s *Service) Create(ctx context.Context, p push.BulkChange, key Key, wrong error) (made push.BulkChange, found bool, err error) {
	p.ID = uuid.Must(uuid.NewV7())
	if key.Text != "" {
		p.ID = uuid.NewHash(sha256.New(), p.Tenant, []byte("bulk change "+key.Text), 8)
	} else if wrong != nil {
		return p, false, wrong
	}
	return s.store.CreateBulkChange(ctx, store.NewBulkChange{BulkChange: p, RequestHash: key.Hash, Most: MaxRunning, Invalid: wrong})
}

// Estimate is what a bulk change would do.
type Estimate struct {
	Found                       int
	More                        bool // so many pushes were looked at that the rest is not counted
	Sampled, Accepted, Rejected int  // of a move: some of them, each tried alone
}

// Estimate says what a bulk change would do, and changes nothing.
func (s *Service) Estimate(ctx context.Context, p push.BulkChange, caps push.OwnCaps) (e Estimate, err error) {
	p.CreatedAt = time.Now().Add(time.Hour) // whatever the clocks say, what is booked counts
	most := 0
	if p.Action == push.BulkMove {
		most = sampled
	}
	var some []push.BulkPush
	if e.Found, e.More, some, err = s.store.CountBulk(ctx, p, maxCounted, most); err != nil {
		return e, fmt.Errorf("estimate bulk change: %w", err)
	}
	for _, one := range some {
		decided, err := move(ctx, s.pushes, &p, one, schedule.Options{ValidateOnly: true, Caps: caps, Was: one.SendAt})
		if err != nil {
			return e, fmt.Errorf("estimate bulk change: %w", err)
		}
		if e.Sampled++; decided.Outcome == push.BulkChanged {
			e.Accepted++
		} else {
			e.Rejected++
		}
	}
	return e, nil
}

// move moves a push of a bulk change, or finds it moved, or notes why it was refused.
func move(ctx context.Context, pushes pushes, p *push.BulkChange, one push.BulkPush, o schedule.Options) (push.BulkPush, error) {
	to := p.To(one.SendAt)
	res, err := pushes.Reschedule(ctx, p.Tenant, one.ID, schedule.When{SendAt: to}, o)
	moved := errors.Is(err, push.ErrMoved) && res.Push.RequestedSendAt.Equal(to) // by an earlier run of this step; it may have been sent since
	if err == nil || moved {
		one.Outcome = push.BulkChanged
		return one, nil
	}
	return because(one, err)
}

// cancel cancels a push of a bulk change, or finds it canceled, or notes why it was refused.
func cancel(ctx context.Context, pushes pushes, p *push.BulkChange, one push.BulkPush) (push.BulkPush, error) {
	if _, err := pushes.CancelAt(ctx, p.Tenant, one.ID, one.SendAt); err != nil {
		return because(one, err)
	}
	one.Outcome = push.BulkChanged
	return one, nil
}
