package store

import (
	"context"
	"encoding/binary"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// lockSQL waits for the locks named by sorted keys, until the transaction ends.
// tryLockSQL takes those that are free. Both return the keys of locks that were
// not taken.
const (
	lockSQL    = `SELECT k FROM unnest($1::bigint[]) AS k WHERE pg_advisory_xact_lock(k) IS NULL`
	tryLockSQL = `SELECT k FROM unnest($1::bigint[]) AS k WHERE NOT pg_try_advisory_xact_lock(k)`
)

// How many bookings of one recipient a transaction reads: one that tenants share,
// and one that a tenant has for itself. A recipient with more is crowded.
const (
	sharedRows = 128
	ownRows    = 1000
)

// bookingRead is what the decider has to know about a group of orders: the bookings
// around their send times, one range for each recipient; the pushes that
// already bear one of their ids; and those that were made under one of their
// Idempotency-Keys.
type bookingRead struct {
	locks    []int64
	at       map[quota.Recipient]int // in spans
	spans    []span                  // in the order in which the drafts need them
	uses     []int                   // how many drafts need each span
	ids      [][16]byte
	requests [][16]byte
	reach    time.Duration // of the policies

	begun bool         // the transaction has begun, and has the locks
	views []quota.View // that are known without reading; those of other spans are zero
}

func newBookingRead(orders []Order, rerun bool) *bookingRead {
	q := &bookingRead{at: map[quota.Recipient]int{}}
	for _, o := range orders {
		q.reach = max(q.reach, o.Policy.Reach())
		for _, d := range o.Drafts {
			q.add(d, o)
			if rerun || o.mayExist {
				q.ids = append(q.ids, d.Push.ID)
			}
			q.addRequest(d.Push.IdempotencyID)
		}
	}
	for _, sp := range q.spans {
		q.locks = append(q.locks, sp.key())
	}
	slices.Sort(q.locks)
	q.locks = slices.Compact(q.locks)
	return q
}

// limit bounds how many bookings of each recipient are read.
func (q *bookingRead) limit(most int) {
	for i := range q.spans {
		q.spans[i].most = most
	}
}

// addRequest asks for what an Idempotency-Key has made before, under a lock of
// its own. The members of a batch have the same key.
func (q *bookingRead) addRequest(id uuid.UUID) {
	if n := len(q.requests); id != uuid.Nil && (n == 0 || q.requests[n-1] != id) {
		q.requests = append(q.requests, id)
		q.locks = append(q.locks, requestLock(id))
	}
}

func requestLock(id uuid.UUID) int64 { return int64(binary.BigEndian.Uint64(id[8:])) }

// add widens the recipient's range by what matters to the draft.
func (q *bookingRead) add(d Draft, o Order) {
	near := o.CapUsage.whole(o.Policy.Around(d.Push.SendAt, 2), d.Push.SendAt, d.Latest)
	if reach := d.Latest.Add(o.Policy.Reach()); !d.Latest.IsZero() && reach.After(near.Until) {
		near.Until = reach
	}
	if !d.Since.IsZero() {
		near.From, near.Until = earlier(near.From, d.Since), endOfTime
	}
	i, known := q.at[d.recipient()]
	if !known {
		q.at[d.recipient()] = len(q.spans)
		q.spans, q.uses = append(q.spans, span{recipient: d.recipient(), from: near.From, until: near.Until}), append(q.uses, 1)
		return
	}
	q.uses[i]++
	q.spans[i].from = earlier(q.spans[i].from, near.From)
	if near.Until.After(q.spans[i].until) {
		q.spans[i].until = near.Until
	}
}

var endOfTime = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// ask begins a transaction, takes the locks and has the answers read, in one
// exchange. The lock clause is for the rows that bear one of the ids. The decider
// reads bookings as it needs them; its reading must be closed.
func (q *bookingRead) ask(ctx context.Context, c *pgxpool.Conn, locks, lockClause string) (*decider, error) {
	j := &decider{at: q.at, uses: q.uses, views: q.views, existing: map[uuid.UUID]push.Push{}, requests: map[uuid.UUID][]byte{}}
	if j.views == nil {
		j.views = make([]quota.View, len(q.spans))
	}
	b := &pgx.Batch{}
	if !q.begun {
		b.Queue(`begin isolation level read committed`)
		b.Queue(locks, q.locks)
	}
	b.Queue(`SELECT clock_timestamp()`)
	b.Queue(`SELECT `+pushColumns+` FROM pushes p WHERE p.id = ANY ($1::uuid[]) `+lockClause, q.ids)
	b.Queue(`SELECT `+pushColumns+` FROM pushes p WHERE p.idempotency_id = ANY ($1::uuid[])`, q.requests)
	j.reading = &reading{decider: j, spans: q.spans}
	j.reading.queue(b)
	j.reading.results = c.SendBatch(ctx, b)
	if err := q.answer(j, j.reading.results); err != nil {
		_ = j.reading.results.Close()
		return nil, err
	}
	return j, nil
}

// answer reads all but the bookings.
func (q *bookingRead) answer(j *decider, res pgx.BatchResults) error {
	if !q.begun {
		if _, err := res.Exec(); err != nil {
			return err
		}
		rows, _ := res.Query()
		var err error
		if j.locked, err = pgx.CollectRows(rows, pgx.RowTo[int64]); err != nil {
			return err
		}
	}
	if err := res.QueryRow().Scan(&j.now); err != nil {
		return err
	}
	for range 2 {
		rows, _ := res.Query()
		existing, err := pgx.CollectRows(rows, collectPush)
		if err != nil {
			return err
		}
		for _, p := range existing {
			j.know(p)
		}
	}
	return nil
}
