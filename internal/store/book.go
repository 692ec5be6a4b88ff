package store

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/faults"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// Order asks to book pushes, judged one after another: each conflicts with
// those granted before it.
type Order struct {
	Drafts []Draft
	Policy quota.Policy
	Atomic bool          // all or none
	DryRun bool          // judge, but book nothing
	Arm    time.Duration // the caller enqueues wake-ups itself for pushes due so soon

	Allowance *Allowance // what the tenant's caps leave; nil: anything
}

// Draft is a push to be booked. If it has a TTL, ExpiresAt follows from it.
type Draft struct {
	Push   push.Push
	Latest time.Time // a conflict moves the push to the next free time up to here; zero: it is refused
	Since  time.Time // the verdict's view is to show all bookings from here on; zero: only where it matters
}

// Judgement is what became of a draft.
type Judgement int

// The judgements on a draft.
const (
	Refused   Judgement = iota // no place, or none for the others of an atomic order
	Booked                     // a new push
	Replayed                   // the push that this Idempotency-Key made before
	KeyReused                  // this Idempotency-Key made a push from another request
	OverCap                    // a place in the quota, but none under a cap of the tenant
	Uncounted                  // it would be moved to a day that the allowance does not tell: nothing of the order was booked
)

// Verdict is the judgement on one draft. Usage is set where the push was
// booked, View where it was asked for or shows why there was no place, and
// Capped where a cap was in the way, or the count of a day.
type Verdict struct {
	Judgement Judgement
	Push      push.Push
	Usage     []quota.Usage
	View      quota.View
	Capped    *Capped
	Newcomer  bool // booked, and a place of the day's recipients taken
}

func (o Order) weight() int { return len(o.Drafts) }

// Book judges an order against all that is committed, and commits what it
// grants, together with other orders of the moment. It returns a verdict for
// each draft, or push.ErrUnavailable, after which it is unknown whether the
// order was booked; the same ids can then be booked again.
func (s *Store) Book(ctx context.Context, o Order) ([]Verdict, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if len(o.Drafts) > 1 {
		return s.batches.Do(o)
	}
	return s.bookings.Do(o)
}

// bookTogether books orders in one transaction.
func (s *Store) bookTogether(ctx context.Context, orders []Order) ([][]Verdict, error) {
	var verdicts [][]Verdict
	err := s.inTx(ctx, func(ctx context.Context, c *pgxpool.Conn, earlier int) error {
		var err error
		verdicts, err = s.book(ctx, c, orders, earlier > 0)
		return err
	})
	return verdicts, err
}

// book is one run of the transaction. The locks are taken in one statement and
// the bookings read in a later one: a single statement would read a snapshot
// from before its wait for the locks.
func (s *Store) book(ctx context.Context, c *pgxpool.Conn, orders []Order, rerun bool) ([][]Verdict, error) {
	j, err := newQuestion(orders, rerun).ask(ctx, c, "")
	if err != nil {
		return nil, err
	}
	verdicts := make([][]Verdict, len(orders))
	for i, o := range orders {
		verdicts[i] = j.order(o)
	}
	faults.Here(faults.BookLocked)
	return verdicts, insert(ctx, c, j)
}

// insert stores the granted pushes and commits, in one exchange.
func insert(ctx context.Context, c *pgxpool.Conn, j *judge) error {
	b := &pgx.Batch{}
	if len(j.granted) > 0 {
		b.Queue(insertSQL, insertArgs(j.granted)...)
	}
	var near nearLimits
	for i, p := range j.granted {
		near.add(p, j.usage[i])
	}
	near.queue(b)
	b.Queue(`commit`)
	res := c.SendBatch(ctx, b)
	faults.Here(faults.BookCommitting)
	return res.Close()
}
