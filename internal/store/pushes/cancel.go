package pushes

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/store/pg"
)

// waitingSQL reads the recipients' pushes that wait and are not being sent.
const waitingSQL = `
	SELECT l.recipient_key, l.send_at, l.push_id, l.plan
	FROM unnest($1::bigint[]) AS k
	CROSS JOIN LATERAL (SELECT * FROM live WHERE shard = ANY ($3::smallint[]) AND recipient_key = k ORDER BY send_at OFFSET 0) l
	WHERE l.tenant_id = $2 AND l.token IS NULL`

// kindsSQL reads the recipients and kinds of pushes, and when they were booked.
const kindsSQL = `SELECT p.id, p.recipient, p.channel, p.category, p.created_at, p.address <> '' FROM {pushes} p WHERE p.shard = ANY ($2::smallint[]) AND p.id = ANY ($1::uuid[])`

// QueueWaiting adds a query for the recipients' waiting pushes to a batch.
func (s *Store) QueueWaiting(b *pgx.Batch, tenant uuid.UUID, keys []int64, waiting *[]LiveRow) {
	b.Queue(s.db.Joining(waitingSQL), keys, tenant, pg.ShardsOf(keys...)).Query(ReadLiveRows(waiting))
}

const (
	canceledAtOnce = 2000   // how many pushes one statement reads to cancel them
	mostCanceled   = 20_000 // after how many canceled pushes a transaction ends
)

// Waiting is a push that waits.
type Waiting struct {
	Recipient string
	Kind      quota.Kind
	CreatedAt time.Time
	Addressed bool // it has an address of its own
}

// CancelSome cancels the waiting pushes that unwanted selects. how is the statement that ends them. The caller's
// transaction holds the locks of their recipients. CancelSome calls canceled for each canceled push, and reports whether
// there may be more.
func (s *Store) CancelSome(
	ctx context.Context, c *pgxpool.Conn, how string, waiting []LiveRow,
	unwanted func(Waiting) bool, canceled func(recipient string, l LiveRow),
) (more bool, err error) {
	pushes, n := s.db.Layouts.Pushes(), 0
	count := func(recipient string, l LiveRow) {
		n++
		canceled(recipient, l)
	}
	for table, order := range pg.ByTable(waiting, func(l LiveRow) string { return pushes.At(l.SendAt) }) {
		for part := range slices.Chunk(order, canceledAtOnce) {
			if err := s.cancelIn(ctx, c, how, table, waiting, part, unwanted, count); err != nil || n >= mostCanceled {
				return true, err
			}
		}
	}
	return false, nil
}

// cancelIn does the work of CancelSome in one table.
func (s *Store) cancelIn(
	ctx context.Context, c *pgxpool.Conn, how string, table string, waiting []LiveRow, of []int,
	unwanted func(Waiting) bool, canceled func(recipient string, l LiveRow),
) error {
	rows := make(map[uuid.UUID]LiveRow, len(of))
	whose := make(map[uuid.UUID]string, len(of))
	var (
		ids  []uuid.UUID
		keys []int64
	)
	for _, i := range of {
		l := waiting[i]
		rows[l.ID], ids, keys = l, append(ids, l.ID), append(keys, l.Key)
	}
	found, _ := c.Query(ctx, pg.In(s.db.Joining(kindsSQL), "{pushes}", table), ids, pg.ShardsOf(keys...))
	var (
		id     uuid.UUID
		p      Waiting
		chosen []LiveRow
	)
	_, err := pgx.ForEachRow(found, []any{&id, &p.Recipient, &p.Kind.Channel, &p.Kind.Category, &p.CreatedAt, &p.Addressed}, func() error {
		if unwanted(p) {
			whose[id], chosen = p.Recipient, append(chosen, rows[id])
		}
		return nil
	})
	if err != nil || len(chosen) == 0 {
		return err
	}
	slices.SortFunc(chosen, func(a, b LiveRow) int { return bytes.Compare(a.ID[:], b.ID[:]) }) // as finishes lock them
	var r LiveRows
	for _, l := range chosen {
		r.Add(l)
	}
	ended, _ := c.Query(ctx, pg.In(s.db.Joining(how), "{pushes}", table), r.Keys, r.SendAt, r.IDs, r.Plans, pg.ShardsOf(r.Keys...))
	_, err = pgx.ForEachRow(ended, []any{&id}, func() error {
		canceled(whose[id], rows[id])
		return nil
	})
	return err
}
