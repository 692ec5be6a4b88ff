package pushes

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/bulkhead"
	"github.com/sendquota/sendquota/internal/failpoint"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store/pg"
)

// Book decides an order against everything that is committed, and commits what it grants, in one transaction with
// concurrent orders. It returns a decision for each draft, or [push.ErrUnavailable]. After that error it is unknown
// whether the order was booked; booking the same ids again is safe.
//
// Orders of all tenants share transactions. Such a transaction never waits for a lock and reads few bookings of each
// recipient. An order that needs more shares transactions only with orders of its own tenant.
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
		decisions, err := s.bookSingle(ctx, o, s.bookSlots, s.bookGroups.Do)
		if err != nil || decisions != nil {
			return decisions, err
		}
		o.mayExist = true
	}
	return s.bookSingle(ctx, o, s.ownSlots, s.ownBookings.book)
}

// bookParts books an order for several recipients in one transaction per lane.
func (s *Store) bookParts(o Order) ([]booking.Decision, error) {
	decisions := make([]booking.Decision, len(o.Drafts))
	var parts errgroup.Group
	parts.SetLimit(TenantTransactions)
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

// How many single pushes of one tenant are booked at a time: while no other tenant books, and while others do. A
// transaction decides its pushes one after the other and answers them all at once, so a large one keeps the processors
// busy, Postgres' and this process's, and delays other tenants.
const (
	singlesAlone  = 512
	singlesBeside = 16
)

// bookSingle books a single draft, after it has waited for one of the tenant's slots.
func (s *Store) bookSingle(
	ctx context.Context, o Order, slots *bulkhead.Bulkhead[uuid.UUID], book func(Order) ([]booking.Decision, error),
) ([]booking.Decision, error) {
	weight := int64(1)
	if s.db.Neighbours.Several() {
		weight = singlesAlone / singlesBeside
	}
	slot, free := slots.TryAcquire(o.Tenant(), weight) // nearly always succeeds, and saves a timer
	if !free {
		ctx, cancel := context.WithTimeout(ctx, s.db.Cfg.Timeout)
		defer cancel()
		var err error
		if slot, err = slots.Acquire(ctx, o.Tenant(), weight); err != nil {
			return nil, fmt.Errorf("%w: %w", push.ErrUnavailable, err)
		}
	}
	defer slot.Release()
	return book(o)
}

// bookShared books single drafts of several tenants in one transaction. A draft that would have to wait for a lock or
// read many bookings gets no decisions.
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
			if unseen := widenUnseen(orders[i:i+1], [][]booking.Decision{made}); !unseen {
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

// ErrReadMore reports that a recipient has many bookings, or no free time for days. The process has noted that; run the
// transaction again, and it reads more.
var ErrReadMore = errors.New("more bookings of a recipient must be read")

// bookOwnOnce runs the transaction once. It takes the locks in one statement and reads the bookings in a later one: a
// single statement would read a snapshot from before its wait for the locks.
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
	if unseen := widenUnseen(orders, decisions); unseen || len(r.Crowded) > 0 {
		return nil, ErrReadMore
	}
	if err := insert(ctx, c, decider.Granted, r.Pushes, crowds); err != nil {
		return nil, err
	}
	s.Crowds.keep(crowds, r)
	return decisions, nil
}

// widenUnseen marks the drafts that saw too few bookings, so that the next run reads all times that they may be moved to.
// It reports whether there are any.
func widenUnseen(orders []Order, decisions [][]booking.Decision) (unseen bool) {
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
