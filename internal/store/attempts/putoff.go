package attempts

import (
	"context"

	"github.com/sendquota/sendquota/internal/store/pg"
	"github.com/sendquota/sendquota/internal/store/pushes"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
)

// A rule puts off a due push if the recipient's actual sends leave no room for it. When the rules change, the push becomes
// due again and the next claim decides: otherwise a rule that was wrong for seconds would hold the push for its whole
// window.

// recheckPage limits how many pushes one transaction makes due again.
const recheckPage = 500

// putOffOf selects the pushes of a tenant that a rule put off.
const putOffOf = `FROM live WHERE {shard} tenant_id = $1 AND put_off_at IS NOT NULL AND token IS NULL`

// CountPutOff counts a tenant's pushes that a rule put off, up to [pg.MostCounted].
func CountPutOff(ctx context.Context, c pgx.Tx, tenant uuid.UUID) (n int, err error) {
	err = c.QueryRow(ctx, pg.InAllShards(`SELECT count(*) FROM (SELECT `+putOffOf+` LIMIT $2) p`), tenant, pg.MostCounted).Scan(&n)
	return n, err
}

// PutOff counts all tenants' pushes that a rule put off, up to [pg.MostCounted].
func (s *Store) PutOff(ctx context.Context) (n int, err error) {
	err = s.db.ReadPool.QueryRow(ctx, `SELECT count(*) FROM (SELECT FROM live WHERE put_off_at IS NOT NULL AND token IS NULL LIMIT $1) p`, pg.MostCounted).Scan(&n)
	return n, pg.Classify(err)
}

// recheckSQL makes pushes due again. The transaction has locked their rows in live. A push that is parked, because its
// campaign is paused, stays parked. $5 marks the pushes as a burst, so that many of them do not delay other tenants' pushes.
const recheckSQL = `
	WITH changed AS (
		UPDATE live l SET next_at = CASE WHEN l.next_at = 'infinity' THEN l.next_at ELSE greatest(l.send_at, statement_timestamp()) END,
			plan = l.plan + 1, put_off_at = NULL, rank = l.rank | $5::bool::int::smallint, phase = l.rank | $5::bool::int::smallint
		FROM unnest($1::bigint[], $2::timestamptz[], $3::uuid[]) AS n (recipient_key, send_at, id)
		WHERE l.shard = ANY ($4::smallint[]) AND l.recipient_key = ANY (ARRAY[n.recipient_key]) AND l.send_at = n.send_at AND l.push_id = n.id AND l.token IS NULL
		RETURNING l.push_id, l.recipient_key
	), rechecked AS (
		UPDATE {pushes} p SET next_at = greatest(p.send_at, statement_timestamp()), plan = p.plan + 1, held_until = statement_timestamp(),
			updated_at = statement_timestamp()
		FROM changed WHERE p.shard = ANY ($4::smallint[]) AND p.id = changed.push_id
	)
	SELECT recipient_key FROM changed`

// QueueRecheck adds statements to a batch that make pushes due again, and passes their recipients' keys to due. The
// transaction must have locked their rows in live.
func (s *Store) QueueRecheck(b *pgx.Batch, found []pushes.LiveRow, due func(key int64)) {
	weeks := s.db.Layouts.Pushes()
	for table, at := range pg.ByTable(found, func(l pushes.LiveRow) string { return weeks.At(l.SendAt) }) {
		var part pushes.LiveRows
		for _, i := range at {
			part.Add(found[i])
		}
		b.Queue(pg.In(s.db.Joining(recheckSQL), "{pushes}", table), part.Keys, part.SendAt, part.IDs, pg.ShardsOf(part.Keys...), len(found) >= recheckPage).
			Query(func(rows pgx.Rows) error {
				var key int64
				_, err := pgx.ForEachRow(rows, []any{&key}, func() error { due(key); return nil })
				return err
			})
	}
}

// RecheckPutOff makes some pushes due again that a rule put off before the operation was settled. It returns
// [booking.ErrReplaced] if the operation is not running any more, or another worker has it.
func (s *Store) RecheckPutOff(ctx context.Context, op *booking.Refitting) (done booking.Rechecked, err error) {
	const old = putOffOf + ` AND put_off_at <= (SELECT settled_at FROM policy_operations WHERE id = $2)`
	shards, err := pg.Collect(ctx, s.db, pgx.RowTo[int16], pg.InAllShards(`SELECT DISTINCT shard `+old+` ORDER BY 1`), op.Tenant, op.ID)
	if err != nil || len(shards) == 0 {
		return done, err
	}
	lanes := make([]push.Lane, len(shards))
	for i, shard := range shards {
		lanes[i] = push.Lane{First: int(shard), Last: int(shard)}
	}
	done.More = true // rows that other transactions have locked were skipped
	for turn := range s.db.InTurn(lanes) {
		var some []int64
		err := s.db.InTx(ctx, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
			some = nil
			return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
				var found []pushes.LiveRow
				b := &pgx.Batch{}
				b.Queue(pg.InShard(`SELECT recipient_key, send_at, push_id, plan `+old+` LIMIT $3 FOR UPDATE SKIP LOCKED`, "$4::bigint", turn...),
					append([]any{op.Tenant, op.ID, recheckPage}, pg.ShardArg(turn)...)...).Query(pushes.ReadLiveRows(&found))
				if err := tx.SendBatch(ctx, b).Close(); err != nil || len(found) == 0 {
					return err
				}
				b = &pgx.Batch{}
				s.QueueRecheck(b, found, func(key int64) { some = append(some, key) })
				if err := tx.SendBatch(ctx, b).Close(); err != nil {
					return err
				}
				return NoteOperation(ctx, tx, op, `rechecked = rechecked + $4`, len(some))
			})
		})
		if done.Recipients = append(done.Recipients, some...); err != nil {
			return done, err
		}
	}
	return done, nil
}

// RecheckFile begins an operation for each tenant without a policy of its own that has pushes put off by a rule of the
// operator's file, unless one is running: the file may have changed. Rules of the present file put their pushes off again.
func (s *Store) RecheckFile(ctx context.Context) error {
	return s.db.InTx(ctx, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		_, err := c.Exec(ctx, `
			INSERT INTO policy_operations (id, tenant_id, version, apply)
			SELECT gen_random_uuid(), t.id, t.policy_version, 'new_only' FROM tenants t
			JOIN (SELECT DISTINCT tenant_id FROM live WHERE put_off_at IS NOT NULL AND token IS NULL) l ON l.tenant_id = t.id
			WHERE NOT EXISTS (SELECT FROM policies p WHERE p.tenant_id = t.id AND p.version = t.policy_version AND p.document IS NOT NULL)
			ORDER BY t.id ON CONFLICT DO NOTHING`)
		return err
	})
}

// QueuePutOff adds a query to a batch that locks and reads the recipients' pushes that a rule put off.
func (s *Store) QueuePutOff(b *pgx.Batch, tenant uuid.UUID, keys []int64, found *[]pushes.LiveRow) {
	b.Queue(s.db.Joining(`SELECT recipient_key, send_at, push_id, plan FROM live
		WHERE shard = ANY ($3::smallint[]) AND tenant_id = $1 AND recipient_key = ANY ($2::bigint[]) AND put_off_at IS NOT NULL AND token IS NULL
		ORDER BY push_id FOR UPDATE`), tenant, keys, pg.ShardsOf(keys...)).Query(pushes.ReadLiveRows(found))
}

// NoteOperation records progress of a policy operation, set with args from $4 on, and extends the worker's lease. It
// returns [booking.ErrReplaced] if the operation is not running, or another worker has it.
func NoteOperation(ctx context.Context, c pg.Execer, r *booking.Refitting, set string, args ...any) error {
	tag, err := c.Exec(ctx, `
		UPDATE policy_operations SET updated_at = clock_timestamp(), lease_until = clock_timestamp() + $3::interval, `+set+`
		WHERE id = $1 AND worker = $2 AND status = 'running'`, append([]any{r.ID, r.Worker, pg.LeaseTime}, args...)...)
	if err == nil && tag.RowsAffected() == 0 {
		err = booking.ErrReplaced
	}
	return err
}
