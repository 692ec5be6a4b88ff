package pushes

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/sendquota/sendquota/internal/store/pg"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/bulkhead"
	"github.com/sendquota/sendquota/internal/failpoint"
	"github.com/sendquota/sendquota/internal/push"
)

// Order is a booking.Order on its way to Postgres.
type Order struct {
	booking.Order
	mayExist bool // an earlier transaction may have booked it
}

func (o Order) weight() int { return len(o.Drafts) }

// recipientKey is that of the first draft.
func (o Order) recipientKey() int64 { return keyOf(o.Drafts[0]) }

func keyOf(d booking.Draft) int64 { return push.RecipientKey(d.Push.Tenant, d.Push.Recipient) }

// Book decides an order against all that is committed, and commits what it grants, together with other orders of the
// moment. It returns a decision for each draft, or [push.ErrUnavailable], after which it is unknown whether the order
// was booked; the same ids can then be booked again.
//
// Orders of all tenants share transactions, which therefore wait for no lock and read few bookings of each recipient.
// An order that needs more time than that shares transactions with others of its tenant only.
func (s *Store) Book(ctx context.Context, bo booking.Order) ([]booking.Decision, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	decisions, err := s.book(ctx, Order{Order: bo})
	if err == nil {
		err = s.readReplayed(ctx, bo.Drafts, decisions)
	}
	if err != nil {
		return nil, err
	}
	return decisions, nil
}

func (s *Store) book(ctx context.Context, o Order) ([]booking.Decision, error) {
	s.db.Neighbours.Seen(o.Tenant())
	if len(o.Drafts) > 1 {
		if s.db.ByShard() && !o.whole() {
			return s.bookParts(o)
		}
		return s.ownBookings.book(o)
	}
	if !s.Crowds.knows(o.Drafts[0].Recipient()) && o.Drafts[0].Retried == nil { // a retry reads more
		decisions, err := s.bookSingle(ctx, o, s.bookPlaces, s.bookGroups.Do)
		if err != nil || decisions != nil {
			return decisions, err
		}
		o.mayExist = true
	}
	return s.bookSingle(ctx, o, s.ownPlaces, s.ownBookings.book)
}

// whole reports whether the order must be decided in one transaction, whichever shards that touches.
func (o Order) whole() bool {
	return o.Atomic || o.CapUsage != nil || slices.ContainsFunc(o.Drafts, func(d booking.Draft) bool { return d.Push.IdempotencyID != uuid.Nil })
}

// bookParts books an order for several recipients in a transaction for each lane.
func (s *Store) bookParts(o Order) ([]booking.Decision, error) {
	decisions := make([]booking.Decision, len(o.Drafts))
	var parts errgroup.Group
	parts.SetLimit(OwnTenantTurns)
	for part := range pg.ByLane(o.Drafts, s.db.Cfg.Lanes, keyOf) {
		parts.Go(func() error {
			of := o
			of.Drafts = make([]booking.Draft, len(part))
			for n, i := range part {
				of.Drafts[n] = o.Drafts[i]
			}
			made, err := s.ownBookings.book(of)
			if err != nil {
				return err
			}
			for n, i := range part {
				decisions[i] = made[n]
			}
			return nil
		})
	}
	return decisions, parts.Wait()
}

// How many single pushes of one tenant are booked at a time: alone, and beside other tenants. All of a transaction's
// pushes are decided one after the other and answered at the same moment: they keep the processors busy, Postgres' and
// ours, for what others do meanwhile.
const (
	singlesAlone  = 512
	singlesBeside = 16
)

// bookSingle books a single draft in a place among those of its tenant.
func (s *Store) bookSingle(
	ctx context.Context, o Order, places *bulkhead.Bulkhead[uuid.UUID], book func(Order) ([]booking.Decision, error),
) ([]booking.Decision, error) {
	weight := int64(1)
	if s.db.Neighbours.Several() {
		weight = singlesAlone / singlesBeside
	}
	place, lent := places.TryAcquire(o.Tenant(), weight) // as nearly always: no timer is needed then
	if !lent {
		ctx, cancel := context.WithTimeout(ctx, s.db.Cfg.Timeout)
		defer cancel()
		var err error
		if place, err = places.Acquire(ctx, o.Tenant(), weight); err != nil {
			return nil, fmt.Errorf("%w: %w", push.ErrUnavailable, err)
		}
	}
	defer place.Release()
	return book(o)
}

// bookShared books single drafts of several tenants in one transaction. Those that cannot share it, because they would
// have to wait for a lock or read many bookings, get no decisions.
func (s *Store) bookShared(ctx context.Context, orders []Order) ([][]booking.Decision, error) {
	var decisions [][]booking.Decision
	err := s.db.InTx(ctx, func(ctx context.Context, c *pgxpool.Conn, earlier int) error {
		r := s.NewBookingRead(orders, earlier > 0, sharedRows)
		decider, err := r.Start(ctx, s, c, s.db.Locking(earlier == 0), false) // an earlier run may not have ended yet
		if err != nil {
			return err
		}
		decisions = make([][]booking.Decision, len(orders))
		for i, o := range orders {
			if !r.shareable(o.Drafts[0]) {
				continue
			}
			made := decider.Book(o.Order)
			if unseen := lookFurther(orders[i:i+1], [][]booking.Decision{made}); !unseen {
				decisions[i] = made
			}
		}
		if err := r.Close(); err != nil {
			return err
		}
		return insert(ctx, c, decider.Granted, r.Pushes, nil)
	})
	return decisions, err
}

// bookOwn books orders of one tenant in one transaction.
func (s *Store) bookOwn(ctx context.Context, orders []Order) ([][]booking.Decision, error) {
	var decisions [][]booking.Decision
	for {
		err := s.db.InTx(ctx, func(ctx context.Context, c *pgxpool.Conn, earlier int) error {
			var err error
			decisions, err = s.bookOwnOnce(ctx, c, orders, earlier > 0)
			return err
		})
		if !errors.Is(err, ErrReadMore) {
			return decisions, err
		}
		for i := range orders {
			orders[i].mayExist = true
		}
	}
}

// errReadMore: a recipient turned out to have many bookings, or no free time for days. The transaction is to be run again, now that
// this is known.
var ErrReadMore = errors.New("more bookings of a recipient must be read")

// bookOwnOnce is one run of the transaction. The locks are taken in one statement and the bookings read in a later one:
// a single statement would read a snapshot from before its wait for the locks.
func (s *Store) bookOwnOnce(ctx context.Context, c *pgxpool.Conn, orders []Order, rerun bool) ([][]booking.Decision, error) {
	r := s.NewBookingRead(orders, rerun, OwnRows)
	crowds, err := s.Crowds.prepare(ctx, c, r, s.db.Locking(false))
	if err != nil {
		return nil, err
	}
	decider, err := r.Start(ctx, s, c, s.db.Locking(false), false)
	if err != nil {
		return nil, err
	}
	decisions := make([][]booking.Decision, len(orders))
	noTurn := s.db.Cfg.Computing.Do(ctx, orders[0].Tenant(), func() error {
		for i, o := range orders {
			decisions[i] = decider.Book(o.Order)
		}
		return nil
	})
	if err := r.Close(); err != nil {
		return nil, err
	}
	if noTurn != nil {
		return nil, fmt.Errorf("%w: %w", push.ErrUnavailable, noTurn)
	}
	for _, recipient := range r.Crowded {
		s.Crowds.Put(recipient, Crowd{})
	}
	if unseen := lookFurther(orders, decisions); unseen || len(r.Crowded) > 0 {
		return nil, ErrReadMore
	}
	if err := insert(ctx, c, decider.Granted, r.Pushes, crowds); err != nil {
		return nil, err
	}
	s.Crowds.keep(crowds, r)
	return decisions, nil
}

// lookFurther has drafts see all times that they may be moved to, if what they saw was not enough.
func lookFurther(orders []Order, decisions [][]booking.Decision) (unseen bool) {
	for i, made := range decisions {
		for n := range made {
			if made[n].Outcome == booking.Unseen {
				orders[i].Drafts[n].Far, unseen = true, true
			}
		}
	}
	return unseen
}

// insert stores the granted pushes and commits, in one exchange.
func insert(ctx context.Context, c *pgxpool.Conn, granted []booking.Grant, pushes pg.Parts, crowds *HeldCrowds) error {
	failpoint.Hit(failpoint.BookLocked)
	b := &pgx.Batch{}
	if len(granted) > 0 {
		QueueInsert(b, granted, pushes)
		queueKeyed(b, granted)
		crowds.QueueChanged(b, granted)
		QueueNearLimits(b, granted)
	}
	b.Queue(`commit`)
	res := c.SendBatch(ctx, b)
	failpoint.Hit(failpoint.BookCommitting)
	return res.Close()
}
