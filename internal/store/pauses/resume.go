package pauses

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/pause"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store/attempts"
	"github.com/sendquota/sendquota/internal/store/pg"
	"github.com/sendquota/sendquota/internal/store/pushes"
)

// A claim of a due push that a pause covers parks it: the push stays in live, with the id of the pause, and never becomes
// due. So it costs one claim, however long the pause is. Pushes that are not due are not touched. After the end of the
// pause, workers give the parked pushes their times back, a portion in each transaction, and then remove the row of the
// pause. A crash leaves a portion less to do.

// portion limits how many parked pushes one transaction changes.
const portion = 1000

// EndPauses ends the pauses whose time is over, and returns them.
func (s *Store) EndPauses(ctx context.Context) (ended []pause.Pause, err error) {
	owners, err := pg.Collect(ctx, s.db, pgx.RowTo[uuid.UUID], `
		SELECT DISTINCT coalesce(tenant_id, `+pg.NoID+`) FROM pauses WHERE ended_at IS NULL AND until <= statement_timestamp()`)
	for _, tenant := range owners {
		if err != nil {
			return ended, err
		}
		var some []pause.Pause
		err = s.db.InTx(ctx, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
			return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) (err error) {
				if err = lock(ctx, tx, tenant); err == nil {
					some, err = endOver(ctx, tx, tenant)
				}
				return err
			})
		})
		ended = append(ended, some...)
	}
	return ended, err
}

// parkedOf returns a query that reads and locks parked pushes that meet a condition. It skips rows that other transactions have
// locked.
func parkedOf(condition string) string {
	return `SELECT recipient_key, send_at, push_id, plan FROM live WHERE {shard} token IS NULL AND ` + condition + ` LIMIT $2 FOR UPDATE SKIP LOCKED`
}

var (
	ofPauseSQL = parkedOf(`pause_id = $1`)
	lateSQL    = parkedOf(`pause_id IS NOT NULL AND $1::uuid IS NULL AND expires_at <= statement_timestamp()`)
)

// unparkSQL restores the next times of pushes from pushes. It records that the pause held the pushes that are already due.
// $6 marks the pushes as a burst, so that many of them do not delay other tenants' pushes.
const unparkSQL = `
	WITH due AS (
		UPDATE live l SET next_at = n.next_at, pause_id = NULL, rank = l.rank | $6::bool::int::smallint, phase = l.rank | $6::bool::int::smallint FROM (
			SELECT n.*, p.next_at FROM unnest($1::bigint[], $2::timestamptz[], $3::uuid[]) AS n (recipient_key, send_at, id)
			CROSS JOIN LATERAL (SELECT next_at FROM {pushes} p WHERE p.shard = ANY ($4::smallint[]) AND p.id = n.id OFFSET 0) p
		) n
		WHERE l.shard = ANY ($4::smallint[]) AND l.recipient_key = ANY (ARRAY[n.recipient_key]) AND l.send_at = n.send_at AND l.push_id = n.id AND l.token IS NULL
		RETURNING l.recipient_key, l.push_id, n.next_at
	), held AS (
		UPDATE {pushes} p SET held_by = '` + push.PausedBy + `' || z.scope, held_since = greatest(z.created_at, due.next_at), held_until = z.ended_at
		FROM due, pauses z
		WHERE p.shard = ANY ($4::smallint[]) AND p.id = due.push_id AND due.next_at <= statement_timestamp() AND z.id = $5
	)
	SELECT recipient_key, next_at, next_at - statement_timestamp() FROM due`

// manyAtOnce is the number of pushes from which on a portion is a burst.
const manyAtOnce = 500

// Unpark continues with some pushes of pauses that have ended. It removes the pauses without any. more reports whether to
// call it again at once.
func (s *Store) Unpark(ctx context.Context) (due []booking.Unparked, more bool, err error) {
	ended, err := pg.Collect(ctx, s.db, pgx.RowTo[uuid.UUID], `SELECT id FROM pauses WHERE ended_at IS NOT NULL ORDER BY ended_at LIMIT 10`)
	for _, id := range ended {
		if err != nil {
			return due, more, err
		}
		var (
			some  []booking.Unparked
			found int
		)
		found, err = s.eachPortion(ctx, `pause_id = $1`, ofPauseSQL, id, func(ctx context.Context, tx pgx.Tx, rows []pushes.LiveRow) error {
			part, err := byWeek(ctx, s, tx, rows, pgx.RowToStructByPos[booking.Unparked], unparkSQL, id, len(rows) >= manyAtOnce)
			some = part
			return err
		}, func() { due = append(due, some...) })
		if err == nil && found == 0 {
			err = s.removeEnded(ctx, id)
		}
		more = more || found > 0
	}
	return due, more, err
}

// removeEnded removes a pause that has ended, if no push is parked by it.
func (s *Store) removeEnded(ctx context.Context, id uuid.UUID) error {
	return s.db.InTx(ctx, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		_, err := c.Exec(ctx, pg.InAllShards(`DELETE FROM pauses WHERE id = $1 AND ended_at IS NOT NULL AND NOT EXISTS (SELECT FROM live WHERE pause_id = $1)`), id)
		return err
	})
}

var expireSQL = pushes.Ending{
	Rows: pushes.LockedRows, Shards: `$4`, Status: push.Expired, Reason: `'it expired while sending was paused'`, Columns: pushes.EndedSQL,
}.SQL()

// ExpirePaused ends some parked pushes that have expired. more reports whether to call it again at once.
func (s *Store) ExpirePaused(ctx context.Context) (ended []booking.Ended, more bool, err error) {
	var some []booking.Ended
	found, err := s.eachPortion(ctx, `pause_id IS NOT NULL AND $1::uuid IS NULL AND expires_at <= statement_timestamp()`, lateSQL, nil, func(ctx context.Context, tx pgx.Tx, rows []pushes.LiveRow) (err error) {
		some, err = byWeek(ctx, s, tx, rows, attempts.CollectEnded, expireSQL)
		return err
	}, func() { ended = append(ended, some...) })
	return ended, found >= portion, err
}

// eachPortion locks and changes a portion of parked pushes in each group of lanes, in a transaction of its own. After each commit it
// calls done. It returns the number of pushes that it found.
func (s *Store) eachPortion(ctx context.Context, condition, sql string, arg any, change func(ctx context.Context, tx pgx.Tx, rows []pushes.LiveRow) error, done func()) (found int, err error) {
	shards, err := pg.Collect(ctx, s.db, pgx.RowTo[int16], pg.InAllShards(`SELECT DISTINCT shard FROM live WHERE token IS NULL AND `+condition+` ORDER BY 1`), arg)
	if err != nil || len(shards) == 0 {
		return 0, err
	}
	lanes := make([]push.Lane, len(shards))
	for i, shard := range shards {
		lanes[i] = push.Lane{First: int(shard), Last: int(shard)}
	}
	for some := range s.db.InTurn(lanes) {
		var rows []pushes.LiveRow
		err := s.db.InTx(ctx, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
			return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
				rows = nil
				read, _ := tx.Query(ctx, pg.InShard(sql, "$3::bigint", some...), append([]any{arg, portion}, pg.ShardArg(some)...)...)
				if err := pushes.ReadLiveRows(&rows)(read); err != nil || len(rows) == 0 {
					return err
				}
				return change(ctx, tx, rows)
			})
		})
		if err != nil {
			return found, err
		}
		if len(rows) > 0 {
			done()
		}
		found += len(rows)
	}
	return found, nil
}

// byWeek runs a statement that changes locked pushes, for the table of each week, and collects its rows.
func byWeek[T any](ctx context.Context, s *Store, tx pgx.Tx, rows []pushes.LiveRow, scan pgx.RowToFunc[T], sql string, args ...any) (all []T, err error) {
	weeks := s.db.Layouts.Pushes()
	for table, at := range pg.ByTable(rows, func(l pushes.LiveRow) string { return weeks.At(l.SendAt) }) {
		var part pushes.LiveRows
		for _, i := range at {
			part.Add(rows[i])
		}
		found, _ := tx.Query(ctx, pg.In(s.db.Joining(sql), "{pushes}", table), append([]any{part.Keys, part.SendAt, part.IDs, pg.ShardsOf(part.Keys...)}, args...)...)
		if all, err = pgx.AppendRows(all, found, scan); err != nil {
			return nil, err
		}
	}
	return all, nil
}
