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

// deliveredSQL returns a condition: an attempt of push n was delivered. shards is an expression for the shards to search.
func deliveredSQL(shards string) string {
	return `EXISTS (SELECT FROM {sends} s WHERE s.shard = ANY (` + shards + `::smallint[]) AND s.push_id = n.id AND s.outcome = 'delivered')`
}

// deliveredSegmentsSQL returns an expression for the segments of the text of push n that was delivered.
func deliveredSegmentsSQL(shards string) string {
	return `(SELECT max(s.segments) FROM {sends} s WHERE s.shard = ANY (` + shards + `::smallint[]) AND s.push_id = n.id AND s.outcome = 'delivered')`
}

// lateSQL records that attempts which were reaped as lost were delivered after all, and marks their hours for another
// audit. It is not part of finishSQL, because that may have waited for the statement that reaped them, and then does not
// see the rows that it wrote.
var lateSQL = `
	WITH recorded AS (
		UPDATE {sends} s SET
			handed_at = CASE WHEN n.handed_us > 0 THEN least(s.started_at + n.handed_us * interval '1 microsecond', statement_timestamp()) END,
			outcome = 'delivered', provider_message_id = CASE WHEN s.recipient = '' THEN '' ELSE n.provider_message_id END,
			error = ` + pushes.UnlessErased(`n.error`, `s.recipient`) + `, segments = nullif(n.segments, 0)
		FROM unnest($1::uuid[], $2::int[], $3::text[], $4::text[], $5::bigint[], $7::int[]) AS n (id, attempt, provider_message_id, error, handed_us, segments)
		WHERE s.shard = ANY ($6::smallint[]) AND s.push_id = n.id AND s.attempt = n.attempt
		RETURNING s.started_at
	)
	INSERT INTO audited (slice, closed, looked_at, changed_at)
	SELECT DISTINCT ` + pg.HourOf(`started_at`) + `, false, '-infinity'::timestamptz, statement_timestamp() FROM recorded ORDER BY 1
	ON CONFLICT (slice) DO UPDATE SET changed_at = EXCLUDED.changed_at`

// settleSQL takes pushes out of live that wait although one of their attempts was delivered, and settledSQL marks them as
// sent. Two processes that finish attempts of one push at the same time do not see each other's outcome, so each checks
// again after its commit: the later one sees both.
var settleSQL = `
	WITH taken AS (
		DELETE FROM live l USING unnest($1::uuid[], $2::bigint[]) AS n (id, recipient_key)
		WHERE l.shard = ANY ($3::smallint[]) AND l.recipient_key = ANY (ARRAY[n.recipient_key]) AND l.push_id = n.id AND l.token IS NULL
			AND ` + deliveredSQL("$3") + `
		RETURNING l.push_id, l.send_at, l.recipient_key, coalesce(` + deliveredSegmentsSQL("$3") + `, 0) AS segments
	)
	SELECT push_id, send_at, recipient_key, segments FROM taken`

var settledSQL = pushes.WithEventsAndCounts(`
	WITH ended AS (
		UPDATE {pushes} p SET status = 'sent', plan = plan + 1, last_error = '', updated_at = statement_timestamp()
		FROM unnest($1::uuid[], $3::int[]) AS n (id, segments)
		WHERE p.shard = ANY ($2::smallint[]) AND p.id = n.id
		RETURNING p.id{whole}
	){events}
	SELECT`, `ended`, pushes.StatusEvent(push.Sent), pushes.SentColumns(`n.segments`), pushes.CountEnded(`ended`, `of_end`))

// settle records attempts that were delivered after all, in one transaction with the end of their pushes. Then it checks
// again the pushes that a concurrent finish may have decided otherwise.
func (s *Store) settle(ctx context.Context, c *pgxpool.Conn, finishes []booking.Finish, round []int, ended map[uuid.UUID]bool) error {
	var late, doubtful []int
	for _, i := range round {
		f := finishes[i]
		if f.Outcome == push.Delivered && !ended[f.Push] {
			late = append(late, i)
		}
		if f.Outcome == push.Delivered && !ended[f.Push] || f.Outcome != push.Delivered && f.Number > 1 && ended[f.Push] {
			doubtful = append(doubtful, i)
		}
	}
	if len(late) > 0 {
		err := pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			for table, at := range pg.ByTable(late, func(i int) string { return s.db.Layouts.Sends().At(finishes[i].StartedAt) }) {
				order := make([]int, len(at))
				for n, at := range at {
					order[n] = late[at]
				}
				if _, err := tx.Exec(ctx, pg.In(s.db.Joining(lateSQL), "{sends}", table), lateArgs(finishes, order)...); err != nil {
					return err
				}
			}
			return s.endDelivered(ctx, c, tx, finishes, late)
		})
		if err != nil {
			return err
		}
	}
	if len(doubtful) == 0 {
		return nil
	}
	return pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error { return s.endDelivered(ctx, c, tx, finishes, doubtful) })
}

// endDelivered ends the finishes' pushes that wait although an attempt was delivered.
func (s *Store) endDelivered(ctx context.Context, c *pgxpool.Conn, tx pgx.Tx, finishes []booking.Finish, of []int) error {
	tables, err := s.attemptTables(ctx, c, finishes, of)
	if err != nil {
		return err
	}
	var (
		ids  []uuid.UUID
		keys []int64
	)
	for _, i := range of {
		ids, keys = append(ids, finishes[i].Push), append(keys, finishes[i].RecipientKey)
	}
	rows, _ := tx.Query(ctx, pg.In(s.db.Joining(settleSQL), "{sends}", tables...), ids, keys, pg.ShardsOf(keys...))
	taken, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (l settled, err error) {
		err = row.Scan(&l.ID, &l.SendAt, &l.Key, &l.segments)
		return l, err
	})
	if err != nil {
		return err
	}
	for table, at := range pg.ByTable(taken, func(l settled) string { return s.db.Layouts.Pushes().At(l.SendAt) }) {
		ids, keys = nil, nil
		segments := make([]int32, len(at))
		for n, i := range at {
			ids, keys, segments[n] = append(ids, taken[i].ID), append(keys, taken[i].Key), taken[i].segments
		}
		if _, err := tx.Exec(ctx, pg.In(s.db.Joining(settledSQL), "{pushes}", table), ids, pg.ShardsOf(keys...), segments); err != nil {
			return err
		}
	}
	return nil
}

// settled is a push that one of its attempts has delivered, and the segments of its text.
type settled struct {
	pushes.LiveRow
	segments int32
}

func lateArgs(finishes []booking.Finish, order []int) []any {
	var (
		ids                []uuid.UUID
		attempts           []int32
		messageIDs, errors []string
		handed, keys       []int64
		segments           []int32
	)
	for _, i := range order {
		f := finishes[i]
		ids, attempts = append(ids, f.Push), append(attempts, int32(f.Number))
		messageIDs, errors = append(messageIDs, f.ProviderMessageID), append(errors, f.Error)
		handed, keys, segments = append(handed, f.Handed.Microseconds()), append(keys, f.RecipientKey), append(segments, int32(f.Segments))
	}
	return []any{ids, attempts, messageIDs, errors, handed, pg.ShardsOf(keys...), segments}
}
