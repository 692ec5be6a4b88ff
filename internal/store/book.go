package store

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/failpoint"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// Order asks to book pushes, decided one after another: each conflicts with
// those granted before it.
type Order struct {
	Drafts []Draft
	Policy quota.Policy
	Atomic bool          // all or none
	DryRun bool          // decide, but book nothing
	Now    time.Time     // free times before are not offered to what is refused
	Arm    time.Duration // the caller enqueues wake-ups itself for pushes due so soon

	CapUsage *CapUsage // what the tenant's caps leave; nil: anything

	mayExist bool // an earlier transaction may have booked it
}

// Draft is a push to be booked. If it has a TTL, ExpiresAt follows from it.
type Draft struct {
	Push   push.Push
	Latest time.Time // a conflict moves the push to the next free time up to here; zero: it is refused
	Since  time.Time // the decision's view is to show all bookings from here on; zero: it need not show any
}

// Outcome is what became of a draft.
type Outcome int

// The outcomes on a draft.
const (
	Refused   Outcome = iota // no place, or none for the others of an atomic order
	Booked                   // a new push
	Replayed                 // the push that this Idempotency-Key made before
	KeyReused                // this Idempotency-Key made a push from another request
	OverCap                  // a place in the quota, but none under a cap of the tenant
	Uncounted                // it would be moved to a day that the cap usage does not tell: nothing of the order was booked
	notShared                // not for a transaction that tenants share; see [Store.Book]
)

// Decision is the outcome on one draft. Usage is set where the push was
// booked, and Capped where a cap was in the way, or the count of a day.
type Decision struct {
	Outcome           Outcome
	Push              push.Push
	Usage             []quota.Usage
	Capped            *Capped
	NewRecipientOfDay bool // booked, and a place of the day's recipients taken

	// Of a draft with Since, booked or refused: all bookings from then on. Crowded
	// says that there are too many to show.
	View    quota.View
	Crowded bool

	// Of a refused draft: why. The free times are set only if Complete. Granted is
	// what the order had booked for the same recipient before, which may have been
	// taken back since.
	Quota    quota.Decision
	Complete bool
	Granted  []quota.Booking
}

func (o Order) weight() int { return len(o.Drafts) }

func (o Order) tenant() uuid.UUID { return o.Drafts[0].Push.Tenant }

// Book decides on an order against all that is committed, and commits what it
// grants, together with other orders of the moment. All its drafts are of one
// tenant. It returns a decision for each draft, or push.ErrUnavailable, after which
// it is unknown whether the order was booked; the same ids can then be booked again.
//
// Orders of all tenants share transactions, which therefore wait for no lock and
// read few bookings of each recipient. An order that needs more time than that
// shares transactions with others of its tenant only.
func (s *Store) Book(ctx context.Context, o Order) ([]Decision, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.ownBookings.company.Note(o.tenant())
	if len(o.Drafts) > 1 || s.crowds.knows(o.Drafts[0].recipient()) {
		return s.ownBookings.do(o)
	}
	decisions, err := s.bookings.Do(o)
	if err == nil && decisions[0].Outcome == notShared {
		o.mayExist = true
		return s.ownBookings.do(o)
	}
	return decisions, err
}

func (d Draft) recipient() quota.Recipient {
	return quota.Recipient{Tenant: d.Push.Tenant, ID: d.Push.Recipient}
}

// bookShared books single drafts of several tenants in one transaction. It passes
// over those whose recipient is locked, or has many bookings.
func (s *Store) bookShared(ctx context.Context, orders []Order) ([][]Decision, error) {
	var decisions [][]Decision
	err := s.inTx(ctx, func(ctx context.Context, c *pgxpool.Conn, earlier int) error {
		q, locks := newBookingRead(orders, earlier > 0), tryLockSQL
		q.limit(sharedRows)
		if earlier > 0 {
			locks = lockSQL // an earlier run may not have ended yet
		}
		j, err := q.ask(ctx, c, locks, "")
		if err != nil {
			return err
		}
		decisions = j.shared(orders)
		if err := j.reading.close(); err != nil {
			return err
		}
		return insert(ctx, c, j, nil)
	})
	return decisions, err
}

// bookOwn books orders of one tenant in one transaction.
func (s *Store) bookOwn(ctx context.Context, orders []Order) ([][]Decision, error) {
	var decisions [][]Decision
	for {
		err := s.inTx(ctx, func(ctx context.Context, c *pgxpool.Conn, earlier int) error {
			var err error
			decisions, err = s.bookOwnOnce(ctx, c, orders, earlier > 0)
			return err
		})
		if !errors.Is(err, errCrowded) {
			return decisions, err
		}
		for i := range orders {
			orders[i].mayExist = true
		}
	}
}

// errCrowded: a recipient turned out to have many bookings. The transaction is to
// be run again, now that this is known.
var errCrowded = errors.New("a recipient has many bookings")

// bookOwnOnce is one run of the transaction. The locks are taken in one statement
// and the bookings read in a later one: a single statement would read a snapshot
// from before its wait for the locks.
func (s *Store) bookOwnOnce(ctx context.Context, c *pgxpool.Conn, orders []Order, rerun bool) ([][]Decision, error) {
	q := newBookingRead(orders, rerun)
	q.limit(ownRows)
	crowds, err := s.crowds.prepare(ctx, c, q)
	if err != nil {
		return nil, err
	}
	j, err := q.ask(ctx, c, lockSQL, "")
	if err != nil {
		return nil, err
	}
	decisions := make([][]Decision, len(orders))
	for i, o := range orders {
		decisions[i] = j.order(o)
	}
	if err := j.reading.close(); err != nil {
		return nil, err
	}
	if len(j.crowded) > 0 {
		s.crowds.note(j.crowded)
		return nil, errCrowded
	}
	if err := insert(ctx, c, j, crowds); err != nil {
		return nil, err
	}
	s.crowds.keep(crowds, j)
	return decisions, nil
}

// insert stores the granted pushes and commits, in one exchange.
func insert(ctx context.Context, c *pgxpool.Conn, j *decider, crowds *heldCrowds) error {
	failpoint.Hit(failpoint.BookLocked)
	b := &pgx.Batch{}
	if len(j.granted) > 0 {
		b.Queue(insertSQL, insertArgs(j.granted)...)
		crowds.queueChanged(b, j.granted)
	}
	var near nearLimits
	for i, p := range j.granted {
		near.add(p, j.usage[i])
	}
	near.queue(b)
	b.Queue(`commit`)
	res := c.SendBatch(ctx, b)
	failpoint.Hit(failpoint.BookCommitting)
	return res.Close()
}
