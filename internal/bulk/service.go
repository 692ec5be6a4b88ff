package bulk

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/bulkchange"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/schedule"
	"github.com/sendquota/sendquota/internal/store/bulk"
)

const (
	// MaxRunning is the maximum number of unfinished bulk changes of a tenant.
	MaxRunning = 5
	// maxCounted is the maximum number of pushes that an estimate reads to count the matching ones.
	maxCounted = 100_000
	// sampleSize is the number of moves that an estimate tries.
	sampleSize = 50
)

// Service serves callers' requests. It is safe for concurrent use. Every method returns [push.ErrNotFound] for another
// tenant's bulk change.
type Service struct {
	reads
	changes changes
	pushes  pushes
}

// reads are the methods of the store that the API uses unchanged.
type reads interface {
	BulkChange(ctx context.Context, tenant, id uuid.UUID) (bulkchange.Change, error)
	BulkChanges(ctx context.Context, tenant uuid.UUID, after bulkchange.Position, limit int) (bulkchange.Page, error)
	BulkRefused(ctx context.Context, tenant, id uuid.UUID, after push.Position, limit int) (bulkchange.RefusedPage, error)
	CancelBulkChange(ctx context.Context, tenant, id uuid.UUID) (bulkchange.Change, error)
}

// changes creates bulk changes, and counts the pushes that one would change.
type changes interface {
	CreateBulkChange(ctx context.Context, n bulk.NewChange) (p bulkchange.Change, found bool, err error)
	CountBulk(ctx context.Context, p bulkchange.Change, limit, sample int) (n int, more bool, some []bulkchange.Push, err error)
}

// Store is the part of the store that a [Service] uses.
type Store interface {
	reads
	changes
}

// pushes cancels and moves one push.
type pushes interface {
	CancelUnlessSent(ctx context.Context, tenant, id uuid.UUID) (push.Push, error)
	Reschedule(ctx context.Context, tenant, id uuid.UUID, to schedule.When, o schedule.Options) (booking.Decision, error)
}

// New returns the bulk changes in a store.
func New(st Store, p pushes) *Service { return &Service{st, st, p} }

// Key is the Idempotency-Key of a request; the zero value is none.
type Key struct {
	Text string
	Hash []byte // of the request
}

// Create creates a bulk change, or returns the one that an earlier request with the same key has created, even if the
// request is wrong by now. Its errors are wrong, [bulkchange.ErrTooMany] and [push.ErrKeyReused].
func (s *Service) Create(ctx context.Context, p bulkchange.Change, key Key, wrong error) (made bulkchange.Change, found bool, err error) {
	p.ID = uuid.Must(uuid.NewV7())
	if key.Text != "" {
		p.ID = uuid.NewHash(sha256.New(), p.Tenant, []byte("bulk change "+key.Text), 8)
	} else if wrong != nil {
		return p, false, wrong
	}
	return s.changes.CreateBulkChange(ctx, bulk.NewChange{Change: p, RequestHash: key.Hash, Most: MaxRunning, Invalid: wrong})
}

// Estimate is the effect that a bulk change would have.
type Estimate struct {
	Found                       int
	More                        bool // the maximum number of pushes was read; the rest is not counted
	Sampled, Accepted, Rejected int  // of a move: the sampleSize pushes, each tried alone
}

// Estimate returns the effect that a bulk change would have. It changes nothing.
func (s *Service) Estimate(ctx context.Context, p bulkchange.Change, caps push.OwnCaps) (e Estimate, err error) {
	p.CreatedAt = time.Now().Add(time.Hour) // count all bookings, whatever the clocks show
	most := 0
	if p.Action == bulkchange.Move {
		most = sampleSize
	}
	var some []bulkchange.Push
	if e.Found, e.More, some, err = s.changes.CountBulk(ctx, p, maxCounted, most); err != nil {
		return e, fmt.Errorf("estimate bulk change: %w", err)
	}
	for _, one := range some {
		decided, err := move(ctx, s.pushes, &p, one, schedule.Options{ValidateOnly: true, Caps: caps, Was: one.SendAt})
		if err != nil {
			return e, fmt.Errorf("estimate bulk change: %w", err)
		}
		if e.Sampled++; decided.Outcome == bulkchange.Changed {
			e.Accepted++
		} else {
			e.Rejected++
		}
	}
	return e, nil
}

// move moves a push of a bulk change, or finds it moved, or sets the reason of the refusal.
func move(ctx context.Context, pushes pushes, p *bulkchange.Change, one bulkchange.Push, o schedule.Options) (bulkchange.Push, error) {
	to := p.To(one.SendAt)
	res, err := pushes.Reschedule(ctx, p.Tenant, one.ID, schedule.When{SendAt: to}, o)
	moved := errors.Is(err, push.ErrMoved) && res.Push.RequestedSendAt.Equal(to) // by an earlier run of this step; it may have been sent since
	if err == nil || moved {
		one.Outcome = bulkchange.Changed
		return one, nil
	}
	return because(one, err)
}

// longestSending bounds the time for which a bulk change returns to a push that is being sent: the longest lease of an attempt.
const longestSending = time.Hour

// cancel cancels a push of a bulk change, or finds it canceled, or sets the reason of the refusal. A push that is being sent
// stays undecided: the change returns to it. No other attempt of it begins.
func cancel(ctx context.Context, pushes pushes, p *bulkchange.Change, one bulkchange.Push) (bulkchange.Push, error) {
	got, err := pushes.CancelUnlessSent(ctx, p.Tenant, one.ID)
	if errors.Is(err, push.ErrNotCancelable) && got.Status == push.Sending && (one.SendingSince.IsZero() || time.Since(one.SendingSince) < longestSending) {
		one.Sending = true
		return one, nil
	}
	if err != nil {
		return because(one, err)
	}
	one.Outcome = bulkchange.Changed
	return one, nil
}
