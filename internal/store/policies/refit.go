package policies

import (
	"context"
	"fmt"
	"time"

	"github.com/sendquota/sendquota/internal/store/attempts"
	"github.com/sendquota/sendquota/internal/store/pg"
	"github.com/sendquota/sendquota/internal/store/pushes"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/policy"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// An operation applies a policy change to existing bookings. It reads the tenant's waiting pushes by send time, a page
// at a time. For each recipient on the page it decides, under the recipient's lock, about all of the recipient's
// bookings. Each step can be repeated: bookings that fit, or were moved, fit the second time too.

// refitPage limits the pushes that an operation reads in a step, and refitPerTx those that a transaction changes.
const (
	refitPage  = 500
	refitPerTx = 500
)

// TakeOperation leases the operation that has waited longest for its next step to a worker. It skips operations that
// other workers hold and operations of the tenants in except, and returns nil if none is left. Two workers may still
// do the same step.
func (s *Store) TakeOperation(ctx context.Context, worker uuid.UUID, except []uuid.UUID) (*booking.Refitting, error) {
	return pg.Leased[booking.Refitting]{
		Table:   "policy_operations",
		Open:    `status = 'running'`,
		Columns: operationColumns + `, p.tenant_id, p.settled_at IS NOT NULL, nullif(p.after_at, '-infinity'), p.after_id`,
		Scan: func(row pgx.CollectableRow) (r booking.Refitting, err error) {
			o := &r.Operation
			err = row.Scan(&o.ID, &o.Version, (*string)(&o.Apply), (*string)(&o.Status), &o.Looked, &o.Moved, &o.Canceled, &o.Rechecked, &o.CreatedAt, &o.UpdatedAt,
				(*zeronull.Timestamptz)(&o.EndedAt), &r.Tenant, &r.Settled, (*zeronull.Timestamptz)(&r.After.SendAt), &r.After.ID)
			r.Worker = worker
			return r, err
		},
	}.Take(ctx, s.db, worker, except)
}

// Deciders lists the virtual transaction ids that hold advisory locks in this database, such as the locks of
// recipients. A transaction that decided by the previous policy is in the list or has ended: it reads the policy in
// force after it has the lock, and keeps the lock until it commits. Ordinary transaction ids would not do, because
// Postgres assigns one only at the first write.
func (s *Store) Deciders(ctx context.Context) ([]string, error) {
	return pg.Collect(ctx, s.db, pgx.RowTo[string], `
		SELECT DISTINCT virtualtransaction FROM pg_locks
		WHERE locktype = 'advisory' AND granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`)
}

// SettleOperation records that all transactions that decided by an older version of the policy have ended.
func (s *Store) SettleOperation(ctx context.Context, r *booking.Refitting) error {
	r.Settled = true
	return s.noteOperation(ctx, r, `settled_at = clock_timestamp()`)
}

// noteOperation updates the row of an operation, and renews the worker's lease.
func (s *Store) noteOperation(ctx context.Context, r *booking.Refitting, set string, args ...any) error {
	ctx, cancel := context.WithTimeout(ctx, s.db.Cfg.Timeout)
	defer cancel()
	return pg.Classify(pg.OnConn(ctx, s.db.Pool, func(c *pgxpool.Conn) error { return attempts.NoteOperation(ctx, c, r, set, args...) }))
}

// pageSQL reads a tenant's pushes after a position, and reports which of them are waiting.
const pageSQL = `
	SELECT p.id, p.send_at, p.recipient, p.status = 'scheduled' AND NOT p.freed FROM {pushes} p
	WHERE p.tenant_id = $1 AND (p.send_at, p.id) > ($2, $3) ORDER BY p.send_at, p.id LIMIT $4`

// RefitPage returns the next page of pushes of an operation.
func (s *Store) RefitPage(ctx context.Context, r *booking.Refitting) (p booking.RefitPage, err error) {
	err = s.db.InTx(ctx, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		p = booking.RefitPage{Next: r.After}
		var now time.Time
		if err := c.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&now); err != nil {
			return err
		}
		if p.Next.SendAt.Before(now) {
			p.Next = push.Position{SendAt: now}
		}
		if err := s.pushes.CheckTables(ctx, pg.Reader{Conn: c}, p.Next.SendAt, booking.EndOfTime); err != nil {
			return err
		}
		left := refitPage
		for _, table := range s.db.Layouts.Pushes().Between(p.Next.SendAt, booking.EndOfTime) {
			rows, _ := c.Query(ctx, pg.In(pageSQL, "{pushes}", table), r.Tenant, p.Next.SendAt, p.Next.ID, left)
			var (
				at        push.Position
				recipient string
				waits     bool
			)
			_, err := pgx.ForEachRow(rows, []any{&at.ID, &at.SendAt, &recipient, &waits}, func() error {
				left--
				if p.Next = at; waits {
					p.Recipients = append(p.Recipients, recipient)
				}
				return nil
			})
			if err != nil || left == 0 {
				return err
			}
		}
		p.Last = true
		return nil
	})
	return p, err
}

// FinishRefitPage records that an operation has finished a page.
func (s *Store) FinishRefitPage(ctx context.Context, r *booking.Refitting, p booking.RefitPage) error {
	set := `looked = looked + $4, after_at = $5, after_id = $6`
	if p.Last {
		set += `, status = 'finished', ended_at = clock_timestamp()`
	}
	return s.noteOperation(ctx, r, set, len(p.Recipients), p.Next.SendAt, p.Next.ID)
}

// Refit makes the bookings of a recipient, or some of them, fit the policy of an operation. It moves a booking that
// does not fit to its next free time up to latest, or cancels it. file holds the terms of tenants without a policy of
// their own. Refit returns [booking.ErrReplaced] if the operation's version is no longer in force.
func (s *Store) Refit(ctx context.Context, op *booking.Refitting, recipient string, file booking.Terms, latest time.Time) (done booking.Refitted, err error) {
	err = s.db.InTx(ctx, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		done = booking.Refitted{}
		now := time.Now()
		o := booking.Order{Policy: file, Now: now, Drafts: []booking.Draft{{Push: push.Push{Content: push.Content{Recipient: recipient}, Tenant: op.Tenant, SendAt: now}, Show: true}}}
		r := s.pushes.NewBookingRead([]booking.Order{o}, false, 0)
		snapshot, err := r.Snapshot(ctx, s.pushes, c, s.db.Locking(false), false)
		if err != nil {
			return err
		}
		decider := booking.NewDecider(snapshot)
		if r.Terms.Used[op.Tenant].Version != op.Version {
			_ = r.Results.Close()
			return booking.ErrReplaced
		}
		misfits := decider.Misfits(o)
		if err := r.Close(); err != nil {
			return err
		}
		if len(misfits.Bookings) == 0 {
			_, err := c.Exec(ctx, `rollback`)
			return err
		}
		w := refitWrite{store: s, c: c, r: r, op: op, o: o, decider: decider}
		done, err = w.run(ctx, misfits, latest)
		return err
	})
	return done, err
}

// refitWrite changes the pushes of a recipient under the recipient's lock.
type refitWrite struct {
	store   *Store
	c       *pgxpool.Conn
	r       *pushes.BookingRead
	op      *booking.Refitting
	o       booking.Order
	decider *booking.Decider
}

// run moves or cancels the misfits, up to refitPerTx of them, and commits.
func (w *refitWrite) run(ctx context.Context, misfits booking.Misfits, latest time.Time) (done booking.Refitted, err error) {
	bookings := misfits.Bookings
	done.More = len(bookings) > refitPerTx
	before, err := w.lock(ctx, bookings[:min(len(bookings), refitPerTx)])
	if err != nil {
		return done, err
	}
	waiting := make([]push.Push, 0, len(before))
	var gone []uuid.UUID
	for id, p := range before {
		if p.Status == push.Scheduled && p.SendAt.After(w.o.Now) {
			waiting, gone = append(waiting, p), append(gone, id)
		}
	}
	if w.op.Apply == policy.Reslot {
		gone = w.decider.Reslot(w.o, misfits, waiting, latest)
	}
	b := &pgx.Batch{}
	for i := range w.decider.Granted {
		p := &w.decider.Granted[i].Push
		pushes.QueueMove(b, w.r.Pushes, before[p.ID], p)
		done.Moved = append(done.Moved, *p)
	}
	for _, id := range gone {
		w.queueCancel(b, before[id])
	}
	done.Canceled = len(gone)
	if len(done.Moved)+done.Canceled == 0 { // other transactions have changed these pushes
		done.More = false
	}
	if err := attempts.NoteOperation(ctx, w.c, w.op, `moved = moved + $4, canceled = canceled + $5`, len(done.Moved), done.Canceled); err != nil {
		return done, err
	}
	return done, pushes.CommitMoves(ctx, w.c, b, w.decider.Granted)
}

// lock locks the recipient's rows in live, and reads their pushes.
func (w *refitWrite) lock(ctx context.Context, bookings []quota.Booking) (map[uuid.UUID]push.Push, error) {
	key := push.RecipientKey(w.op.Tenant, w.o.Drafts[0].Push.Recipient)
	b, ids := &pgx.Batch{}, make([]pushes.Ref, len(bookings))
	for i, one := range bookings {
		ids[i] = pushes.RefOf(one.ID, key)
		b.Queue(pushes.LockLiveSQL, key, one.At, one.ID, pg.ShardsOf(key))
	}
	if err := w.c.SendBatch(ctx, b).Close(); err != nil {
		return nil, err
	}
	found, err := w.store.pushes.ReadPushes(ctx, w.c, ids)
	if err != nil {
		return nil, fmt.Errorf("read pushes: %w", err)
	}
	byID := make(map[uuid.UUID]push.Push, len(found))
	for _, p := range found {
		byID[p.ID] = p.Push
	}
	return byID, nil
}

// cancelMisfitSQL cancels a push that does not fit the policy. Its row in live is locked.
var cancelMisfitSQL = pushes.Ending{Rows: pushes.LockedRows, Shards: `$4`, Status: push.Canceled, Reason: `'` + booking.ChangedReason + `'`}.SQL()

func (w *refitWrite) queueCancel(b *pgx.Batch, p push.Push) {
	key := push.RecipientKey(p.Tenant, p.Recipient)
	b.Queue(pg.In(cancelMisfitSQL, "{pushes}", w.r.Pushes.At(p.SendAt)), []int64{key}, []time.Time{p.SendAt}, []uuid.UUID{p.ID}, pg.ShardsOf(key))
}
