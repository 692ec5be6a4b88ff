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
func (s *Store) Book(ctx context.Context, o booking.Order) (decisions []booking.Decision, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.db.Neighbours.Seen(o.Tenant())
	drafts := o.Drafts
	single := len(drafts) == 1
	if single && !s.Crowds.knows(drafts[0].Recipient()) && drafts[0].Retried == nil { // a retry reads more
		slot, err := s.acquire(ctx, s.bookSlots, o.Tenant())
		if err != nil {
			return nil, err
		}
		decisions, err = s.bookGroups.Do(o)
		slot.Release()
		if err != nil {
			return nil, err
		}
		o.MayExist = true
	}
	switch {
	case decisions != nil:
	case single:
		decisions, err = s.bookAlone(ctx, o)
	case s.db.ByShard() && !whole(o):
		decisions, err = s.bookParts(o)
	default:
		decisions, err = s.ownBookings.book(o)
	}
	if err == nil {
		err = s.readReplayed(ctx, drafts, decisions)
	}
	if err != nil {
		return nil, err
	}
	return decisions, nil
}

// weight returns the number of an order's drafts.
func weight(o booking.Order) int { return len(o.Drafts) }

// recipientKey returns the key of the first draft's recipient.
func recipientKey(o booking.Order) int64 { return keyOf(&o.Drafts[0]) }

func keyOf(d *booking.Draft) int64 { return push.RecipientKey(d.Push.Tenant, d.Push.Recipient) }

// bookAlone books a single draft in transactions of its tenant only.
func (s *Store) bookAlone(ctx context.Context, o booking.Order) ([]booking.Decision, error) {
	slot, err := s.acquire(ctx, s.ownSlots, o.Tenant())
	if err != nil {
		return nil, err
	}
	defer slot.Release()
	return s.ownBookings.book(o)
}

// bookParts books an order for several recipients in one transaction per lane.
func (s *Store) bookParts(o booking.Order) ([]booking.Decision, error) {
	decisions := make([]booking.Decision, len(o.Drafts))
	var parts errgroup.Group
	parts.SetLimit(TenantTransactions)
	for part := range pg.ByLane(o.Drafts, s.db.Cfg.Lanes, func(d booking.Draft) int64 { return keyOf(&d) }) {
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

// acquire waits for one of a tenant's slots.
func (s *Store) acquire(ctx context.Context, slots *bulkhead.Bulkhead[uuid.UUID], tenant uuid.UUID) (*bulkhead.Loan[uuid.UUID], error) {
	weight := int64(1)
	if s.db.Neighbours.Several() {
		weight = singlesAlone / singlesBeside
	}
	slot, free := slots.TryAcquire(tenant, weight) // nearly always succeeds, and saves a timer
	if free {
		return slot, nil
	}
	ctx, cancel := context.WithTimeout(ctx, s.db.Cfg.Timeout)
	defer cancel()
	slot, err := slots.Acquire(ctx, tenant, weight)
	if err != nil {
		return slot, fmt.Errorf("%w: %w", push.ErrUnavailable, err)
	}
	return slot, nil
}

// bookShared books single drafts of several tenants in one transaction. A draft that would have to wait for a lock or
// read many bookings gets no decisions.
func (s *Store) bookShared(ctx context.Context, orders []booking.Order) ([][]booking.Decision, error) {
	var decisions [][]booking.Decision
	err := s.db.InTx(ctx, func(ctx context.Context, c *pgxpool.Conn, earlier int) error {
		r := s.NewBookingRead(orders, earlier > 0, sharedRows)
		snapshot, err := r.Snapshot(ctx, s, c, s.db.Locking(earlier == 0), false) // an earlier run may not have ended yet
		if err != nil {
			return err
		}
		decider := booking.NewDecider(snapshot)
		decisions = make([][]booking.Decision, len(orders))
		for i, o := range orders {
			if !r.shareable(o.Drafts[0]) {
				continue
			}
			made := decider.Book(o)
			if unseen := widenUnseen(orders[i:i+1], [][]booking.Decision{made}); !unseen {
				decisions[i] = made
			}
		}
		if err := r.Close(); err != nil {
			return err
		}
		return insert(ctx, c, decider.Granted, r, nil)
	})
	return decisions, err
}

// bookOwn books orders of one tenant in one transaction.
func (s *Store) bookOwn(ctx context.Context, orders []booking.Order) ([][]booking.Decision, error) {
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
			orders[i].MayExist = true
		}
	}
}

// ErrReadMore reports that a recipient has many bookings, or no free time for days. The process has noted that; run the
// transaction again, and it reads more.
var ErrReadMore = errors.New("more bookings of a recipient must be read")

// bookOwnOnce runs the transaction once. It takes the locks in one statement and reads the bookings in a later one: a
// single statement would read a snapshot from before its wait for the locks.
func (s *Store) bookOwnOnce(ctx context.Context, c *pgxpool.Conn, orders []booking.Order, rerun bool) ([][]booking.Decision, error) {
	r := s.NewBookingRead(orders, rerun, OwnRows)
	crowds, err := s.Crowds.prepare(ctx, c, r, s.db.Locking(false))
	if err != nil {
		return nil, err
	}
	snapshot, err := r.Snapshot(ctx, s, c, s.db.Locking(false), false)
	if err != nil {
		return nil, err
	}
	decider := booking.NewDecider(snapshot)
	decisions := make([][]booking.Decision, len(orders))
	noTurn := s.db.Cfg.Computing.Do(ctx, orders[0].Tenant(), func() error {
		for i, o := range orders {
			decisions[i] = decider.Book(o)
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
	if err := insert(ctx, c, decider.Granted, r, crowds); err != nil {
		return nil, err
	}
	s.Crowds.keep(crowds, r)
	return decisions, nil
}

// widenUnseen marks the drafts that saw too few bookings, so that the next run reads all times that they may be moved to.
// It reports whether there are any.
func widenUnseen(orders []booking.Order, decisions [][]booking.Decision) (unseen bool) {
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
func insert(ctx context.Context, c *pgxpool.Conn, granted []*booking.Decision, r *BookingRead, crowds *HeldCrowds) error {
	failpoint.Hit(failpoint.BookLocked)
	b := &pgx.Batch{}
	if len(granted) > 0 {
		QueueInsert(b, granted, r)
		queueKeyed(b, granted)
		crowds.QueueChanged(b, granted)
		QueueNearLimits(b, granted)
	}
	b.Queue(`commit`)
	res := c.SendBatch(ctx, b)
	failpoint.Hit(failpoint.BookCommitting)
	return res.Close()
}
