package store

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/quota"
)

// waitingSQL finds what waits for recipients, and is not being sent.
const waitingSQL = `
	SELECT l.recipient_key, l.send_at, l.push_id, l.plan
	FROM unnest($1::bigint[]) AS k
	CROSS JOIN LATERAL (SELECT * FROM live WHERE shard = ANY ($3::smallint[]) AND recipient_key = k ORDER BY send_at OFFSET 0) l
	WHERE l.tenant_id = $2 AND l.token IS NULL`

// kindsSQL reads for whom and of which kind pushes are, and when they were booked.
const kindsSQL = `SELECT p.id, p.recipient, p.channel, p.category, p.created_at FROM {pushes} p WHERE p.shard = ANY ($2::smallint[]) AND p.id = ANY ($1::uuid[])`

// queueWaiting asks for what waits for recipients.
func (s *Store) queueWaiting(b *pgx.Batch, tenant uuid.UUID, keys []int64, waiting *[]liveRow) {
	b.Queue(s.joining(waitingSQL), keys, tenant, shardsOf(keys...)).Query(readLiveRows(waiting))
}

// How many pushes one statement looks at, to cancel them, and after how many that are canceled a transaction ends.
const (
	canceledAtOnce = 2000
	mostCanceled   = 20_000
)

// waits is a push that waits.
type waits struct {
	recipient string
	kind      quota.Kind
	createdAt time.Time
}

// cancelSome cancels, of pushes that wait, those that are unwanted, in one of the ways of overSQL, in the transaction that has the
// locks of their recipients. It tells of each that it has canceled, and reports whether there may be more.
func (s *Store) cancelSome(
	ctx context.Context, c *pgxpool.Conn, how string, waiting []liveRow,
	unwanted func(waits) bool, canceled func(recipient string, l liveRow),
) (more bool, err error) {
	pushes, n := s.layouts.pushes(), 0
	count := func(recipient string, l liveRow) {
		n++
		canceled(recipient, l)
	}
	for table, order := range byTable(waiting, func(l liveRow) string { return pushes.at(l.sendAt) }) {
		for part := range slices.Chunk(order, canceledAtOnce) {
			if err := s.cancelIn(ctx, c, how, table, waiting, part, unwanted, count); err != nil || n >= mostCanceled {
				return true, err
			}
		}
	}
	return false, nil
}

// cancelIn is cancelSome for pushes of one table.
func (s *Store) cancelIn(
	ctx context.Context, c *pgxpool.Conn, how string, table string, waiting []liveRow, of []int,
	unwanted func(waits) bool, canceled func(recipient string, l liveRow),
) error {
	rows := make(map[uuid.UUID]liveRow, len(of))
	whose := make(map[uuid.UUID]string, len(of))
	var (
		ids  []uuid.UUID
		keys []int64
	)
	for _, i := range of {
		l := waiting[i]
		rows[l.id], ids, keys = l, append(ids, l.id), append(keys, l.key)
	}
	found, _ := c.Query(ctx, in(s.joining(kindsSQL), "{pushes}", table), ids, shardsOf(keys...))
	var (
		id     uuid.UUID
		p      waits
		chosen []liveRow
	)
	_, err := pgx.ForEachRow(found, []any{&id, &p.recipient, &p.kind.Channel, &p.kind.Category, &p.createdAt}, func() error {
		if unwanted(p) {
			whose[id], chosen = p.recipient, append(chosen, rows[id])
		}
		return nil
	})
	if err != nil || len(chosen) == 0 {
		return err
	}
	slices.SortFunc(chosen, func(a, b liveRow) int { return bytes.Compare(a.id[:], b.id[:]) }) // as finishes lock them
	var r liveRows
	for _, l := range chosen {
		r.add(l)
	}
	ended, _ := c.Query(ctx, in(s.joining(how), "{pushes}", table), r.keys, r.sendAt, r.ids, r.plans, shardsOf(r.keys...))
	_, err = pgx.ForEachRow(ended, []any{&id}, func() error {
		canceled(whose[id], rows[id])
		return nil
	})
	return err
}
