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
const lockSQL = `SELECT count(pg_advisory_xact_lock(k)) FROM unnest($1::bigint[]) AS k`

// bookingsSQL reads the bookings of many recipients, each strictly between two
// times.
const bookingsSQL = `
	SELECT q.i, p.id, p.send_at, p.status
	FROM unnest($1::bigint[], $2::uuid[], $3::text[], $4::timestamptz[], $5::timestamptz[])
		WITH ORDINALITY AS q (recipient_key, tenant_id, recipient, since, until, i)
	CROSS JOIN LATERAL (
		SELECT id, send_at, status, tenant_id, recipient FROM pushes
		WHERE recipient_key = q.recipient_key AND status IN ('scheduled', 'sending', 'sent')
			AND send_at > q.since AND send_at < q.until
		OFFSET 0 -- keeps the next line from choosing another index
	) p
	WHERE p.tenant_id = q.tenant_id AND p.recipient = q.recipient
	ORDER BY q.i, p.send_at, p.id`

// question is what the judge has to know about a group of orders: the bookings
// around their send times, one range for each recipient; the pushes that
// already bear one of their ids; and those that were made under one of their
// Idempotency-Keys.
type question struct {
	locks        []int64
	at           map[quota.Recipient]int
	keys         []int64
	tenants      [][16]byte
	recipients   []string
	since, until []time.Time
	ids          [][16]byte
	requests     [][16]byte
}

func newQuestion(orders []Order, rerun bool) *question {
	q := &question{at: map[quota.Recipient]int{}}
	for _, o := range orders {
		for _, d := range o.Drafts {
			q.add(d, o)
			if rerun {
				q.ids = append(q.ids, d.Push.ID)
			}
			q.addRequest(d.Push.IdempotencyID)
		}
	}
	q.locks = append(q.locks, q.keys...)
	slices.Sort(q.locks)
	q.locks = slices.Compact(q.locks)
	return q
}

// addRequest asks for what an Idempotency-Key has made before, under a lock of
// its own. The members of a batch have the same key.
func (q *question) addRequest(id uuid.UUID) {
	if n := len(q.requests); id != uuid.Nil && (n == 0 || q.requests[n-1] != id) {
		q.requests = append(q.requests, id)
		q.locks = append(q.locks, int64(binary.BigEndian.Uint64(id[8:])))
	}
}

// add widens the recipient's range by what matters to the draft.
func (q *question) add(d Draft, o Order) {
	r := quota.Recipient{Tenant: d.Push.Tenant, ID: d.Push.Recipient}
	near := o.Allowance.whole(o.Policy.Around(d.Push.SendAt, 2), d.Push.SendAt, d.Latest)
	if reach := d.Latest.Add(o.Policy.Reach()); !d.Latest.IsZero() && reach.After(near.Until) {
		near.Until = reach
	}
	if !d.Since.IsZero() {
		near.From, near.Until = earlier(near.From, d.Since), endOfTime
	}
	i, known := q.at[r]
	if !known {
		q.at[r] = len(q.keys)
		q.keys = append(q.keys, push.RecipientKey(r.Tenant, r.ID))
		q.tenants = append(q.tenants, r.Tenant)
		q.recipients = append(q.recipients, r.ID)
		q.since = append(q.since, near.From)
		q.until = append(q.until, near.Until)
		return
	}
	q.since[i] = earlier(q.since[i], near.From)
	if near.Until.After(q.until[i]) {
		q.until[i] = near.Until
	}
}

var endOfTime = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// ask begins a transaction, takes the locks and reads the answers, in one
// exchange. The lock clause is for the rows that bear one of the ids.
func (q *question) ask(ctx context.Context, c *pgxpool.Conn, lockClause string) (*judge, error) {
	b := &pgx.Batch{}
	b.Queue(`begin isolation level read committed`)
	b.Queue(lockSQL, q.locks)
	b.Queue(`SELECT clock_timestamp()`)
	b.Queue(bookingsSQL, q.keys, q.tenants, q.recipients, q.since, q.until)
	b.Queue(`SELECT `+pushColumns+` FROM pushes p WHERE p.id = ANY ($1::uuid[]) `+lockClause, q.ids)
	b.Queue(`SELECT `+pushColumns+` FROM pushes p WHERE p.idempotency_id = ANY ($1::uuid[])`, q.requests)
	res := c.SendBatch(ctx, b)
	j, err := q.answer(res)
	if closeErr := res.Close(); err == nil {
		err = closeErr
	}
	return j, err
}

// answer reads the results of the question's statements.
func (q *question) answer(res pgx.BatchResults) (*judge, error) {
	j := &judge{at: q.at, views: make([]quota.View, len(q.keys)), existing: map[uuid.UUID]push.Push{}, requests: map[uuid.UUID][]byte{}}
	for i := range j.views {
		j.views[i] = quota.View{From: q.since[i], Until: q.until[i]}
	}
	for range 2 {
		if _, err := res.Exec(); err != nil {
			return nil, err
		}
	}
	if err := res.QueryRow().Scan(&j.now); err != nil {
		return nil, err
	}
	rows, _ := res.Query()
	var (
		i int
		b quota.Booking
	)
	if _, err := pgx.ForEachRow(rows, []any{&i, (*[16]byte)(&b.ID), &b.At, nil}, func() error {
		v := &j.views[i-1]
		v.Bookings = append(v.Bookings, b)
		return nil
	}); err != nil {
		return nil, err
	}
	for range 2 {
		rows, _ = res.Query()
		existing, err := pgx.CollectRows(rows, collectPush)
		if err != nil {
			return nil, err
		}
		for _, p := range existing {
			j.know(p)
		}
	}
	return j, nil
}
