package store

import (
	"bytes"
	"context"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/failpoint"
	"github.com/sendquota/sendquota/internal/push"
)

// finishSQL ends attempts whose tokens are still valid: it takes their rows in live, or has them wait again, and then
// writes down in pushes and sends what became of them. If an earlier attempt of the push turned out to be delivered, the
// push is sent, whatever this one says.
const finishSQL = `
	WITH n AS MATERIALIZED (
		SELECT n.*, p.recipient_key, p.send_at,
			n.status <> 'sent' AND EXISTS (SELECT FROM sends s WHERE s.push_id = n.id AND s.outcome = 'delivered') AS delivered
		FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::bool[], $7::text[], $8::bigint[], $9::text[], $10::bigint[])
			AS n (id, token, outcome, provider_message_id, error, reaped, status, delay_us, reason, handed_us)
		CROSS JOIN LATERAL (SELECT recipient_key, send_at FROM pushes WHERE id = n.id OFFSET 0) p
	), over AS (
		DELETE FROM live l USING n
		WHERE l.recipient_key = ANY (ARRAY[n.recipient_key]) AND l.send_at = n.send_at AND l.push_id = n.id AND l.token = n.token
			AND (n.status <> 'scheduled' OR n.delivered)
		RETURNING l.push_id, l.attempts, l.started_at, l.next_at AS lease_until, l.more_due,
			CASE WHEN n.delivered THEN 'sent' ELSE n.status END AS status, NULL::timestamptz AS next_at,
			n.outcome, n.provider_message_id, n.error, n.reaped, CASE WHEN n.delivered THEN '' ELSE n.reason END AS reason, n.handed_us
	), waits AS (
		UPDATE live l SET phase = l.bulk::int, token = NULL, started_at = NULL, plan = l.plan + 1,
			next_at = clock_timestamp() + n.delay_us * interval '1 microsecond'
		FROM n CROSS JOIN LATERAL (
			SELECT started_at, next_at FROM live
			WHERE recipient_key = n.recipient_key AND send_at = n.send_at AND push_id = n.id OFFSET 0
		) old
		WHERE l.recipient_key = ANY (ARRAY[n.recipient_key]) AND l.send_at = n.send_at AND l.push_id = n.id AND l.token = n.token
			AND n.status = 'scheduled' AND NOT n.delivered
		RETURNING l.push_id, l.attempts, old.started_at, old.next_at, l.more_due, n.status, l.next_at,
			n.outcome, n.provider_message_id, n.error, n.reaped, n.reason, n.handed_us
	), ended AS (
		UPDATE pushes p SET
			status = o.status, freed = o.status = 'failed', plan = p.plan + 1, attempts = o.attempts, next_at = coalesce(o.next_at, p.next_at),
			last_error = o.reason, possibly_delivered = p.possibly_delivered OR o.outcome = 'unknown', updated_at = clock_timestamp()
		FROM (SELECT * FROM over UNION ALL SELECT * FROM waits) o WHERE p.id = o.push_id
		RETURNING p.id, p.tenant_id, p.recipient_key, p.recipient, p.channel, o.*
	), fewer AS (` + fewerSQL + `(SELECT recipient_key FROM ended WHERE status = 'failed')), recorded AS (
		INSERT INTO sends (push_id, attempt, tenant_id, recipient_key, recipient, channel, started_at, lease_until,
			ended_at, handed_at, outcome, provider_message_id, error)
		SELECT id, attempts, tenant_id, recipient_key, recipient, channel, started_at, lease_until,
			CASE WHEN reaped THEN lease_until ELSE clock_timestamp() END,
			CASE WHEN handed_us > 0 AND outcome = 'delivered' THEN least(started_at + handed_us * interval '1 microsecond', clock_timestamp()) END,
			outcome, provider_message_id, error
		FROM ended
	)
	SELECT id, more_due FROM ended`

// lateSQL records that attempts which were given up for lost were delivered, and ends their pushes if they wait. It stands
// alone: finishSQL may have waited for the statement that gave them up, and then does not see the rows which that has
// written. The audit looks at their hours again.
var lateSQL = `
	WITH recorded AS (
		UPDATE sends s SET
			handed_at = CASE WHEN n.handed_us > 0 THEN least(s.started_at + n.handed_us * interval '1 microsecond', clock_timestamp()) END,
			outcome = 'delivered', provider_message_id = n.provider_message_id, error = n.error
		FROM unnest($1::uuid[], $2::int[], $3::text[], $4::text[], $5::bigint[]) AS n (id, attempt, provider_message_id, error, handed_us)
		WHERE s.push_id = n.id AND s.attempt = n.attempt
		RETURNING s.push_id, s.recipient_key, s.started_at
	), changed AS (
		INSERT INTO audited (slice, closed, looked_at, changed_at)
		SELECT DISTINCT ` + hourOf(`started_at`) + `, false, '-infinity'::timestamptz, statement_timestamp() FROM recorded ORDER BY 1
		ON CONFLICT (slice) DO UPDATE SET changed_at = EXCLUDED.changed_at
	), taken AS (
		DELETE FROM live l USING recorded r WHERE l.recipient_key = ANY (ARRAY[r.recipient_key]) AND l.push_id = r.push_id AND l.token IS NULL
		RETURNING l.push_id
	)
	UPDATE pushes p SET status = 'sent', plan = p.plan + 1, last_error = '', updated_at = clock_timestamp()
	FROM taken WHERE p.id = taken.push_id`

// settleSQL ends pushes that wait although an attempt of theirs was delivered. Two programs that finish attempts of one
// push at the same time each decide by what was committed when they began, so each looks again when it is done: the
// later one sees both.
const settleSQL = `
	WITH taken AS (
		DELETE FROM live l USING pushes p
		WHERE p.id = ANY ($1::uuid[]) AND l.recipient_key = ANY (ARRAY[p.recipient_key]) AND l.push_id = p.id AND l.token IS NULL
			AND EXISTS (SELECT FROM sends s WHERE s.push_id = p.id AND s.outcome = 'delivered')
		RETURNING l.push_id
	)
	UPDATE pushes p SET status = 'sent', plan = p.plan + 1, last_error = '', updated_at = clock_timestamp()
	FROM taken WHERE p.id = taken.push_id`

// Finish ends an attempt, together with others of the moment. It reports whether another push of the recipient waited
// for that.
func (s *Store) Finish(ctx context.Context, f booking.Finish) (more bool, err error) {
	return s.finishGroup.Do(f)
}

func (s *Store) finishTogether(ctx context.Context, finishes []booking.Finish) ([]bool, error) {
	rounds := finishRounds(finishes)
	more := map[uuid.UUID]bool{}
	rerun := false // what an earlier run has ended is not told of again: callers look for themselves
	err := s.inTx(ctx, func(ctx context.Context, c *pgxpool.Conn, earlier int) error {
		rerun = earlier > 0
		for _, round := range rounds {
			if err := finish(ctx, c, finishes, round, more); err != nil {
				return err
			}
		}
		return nil
	})
	results := make([]bool, len(finishes))
	for i, f := range finishes {
		results[i] = more[f.Push] || rerun
	}
	return results, err
}

// finishRounds puts the finishes into the order in which all groups lock rows, so that none wait for each other in a
// circle. The second finish of a push, a worker's beside the reaper's, comes in a later round: a statement that finds
// two for one row would carry out either.
func finishRounds(finishes []booking.Finish) (rounds [][]int) {
	order := make([]int, len(finishes))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return bytes.Compare(finishes[a].Push[:], finishes[b].Push[:]) })
	round := 0
	for n, i := range order {
		if round++; n == 0 || finishes[i].Push != finishes[order[n-1]].Push {
			round = 0
		}
		if round == len(rounds) {
			rounds = append(rounds, nil)
		}
		rounds[round] = append(rounds[round], i)
	}
	return rounds
}

// finish runs one round, and notes which recipients have more that waits. What ends and what waits again are apart, so
// that each statement locks rows in order.
func finish(ctx context.Context, c *pgxpool.Conn, finishes []booking.Finish, round []int, more map[uuid.UUID]bool) error {
	var ends, waits []int
	for _, i := range round {
		if finishes[i].Resolution.Status == push.Scheduled {
			waits = append(waits, i)
		} else {
			ends = append(ends, i)
		}
	}
	ended := map[uuid.UUID]bool{}
	for _, part := range [][]int{ends, waits} {
		if len(part) == 0 {
			continue
		}
		rows, _ := c.Query(ctx, finishSQL, finishArgs(finishes, part)...)
		failpoint.Hit(failpoint.FinishWriting)
		var (
			id      uuid.UUID
			waiting bool
		)
		_, err := pgx.ForEachRow(rows, []any{(*[16]byte)(&id), &waiting}, func() error {
			more[id] = more[id] || waiting
			ended[id] = true
			return nil
		})
		if err != nil {
			return err
		}
	}
	return settle(ctx, c, finishes, round, ended)
}

// settle records what was delivered after all, and looks again at pushes that may have ended otherwise.
func settle(ctx context.Context, c *pgxpool.Conn, finishes []booking.Finish, round []int, ended map[uuid.UUID]bool) error {
	var (
		doubtful [][16]byte
		late     []int
	)
	for _, i := range round {
		f := finishes[i]
		if f.Outcome == push.Delivered && !ended[f.Push] {
			late = append(late, i)
		}
		if f.Outcome == push.Delivered && !ended[f.Push] || f.Outcome != push.Delivered && f.Attempt > 1 && ended[f.Push] {
			doubtful = append(doubtful, f.Push)
		}
	}
	if len(late) > 0 {
		if _, err := c.Exec(ctx, lateSQL, lateArgs(finishes, late)...); err != nil {
			return err
		}
	}
	if len(doubtful) == 0 {
		return nil
	}
	_, err := c.Exec(ctx, settleSQL, doubtful)
	return err
}

func finishArgs(finishes []booking.Finish, order []int) []any {
	var (
		ids, tokens                                     [][16]byte
		outcomes, messageIDs, errors, statuses, reasons []string
		reaped                                          []bool
		delays, handed                                  []int64
	)
	for _, i := range order {
		f := finishes[i]
		ids, tokens = append(ids, f.Push), append(tokens, f.Token)
		outcomes = append(outcomes, string(f.Outcome))
		messageIDs = append(messageIDs, f.ProviderMessageID)
		errors = append(errors, f.Error)
		reaped = append(reaped, f.Reaped)
		statuses = append(statuses, string(f.Resolution.Status))
		delays = append(delays, f.Resolution.Delay.Microseconds())
		reasons = append(reasons, f.Resolution.Reason)
		handed = append(handed, f.Handed.Microseconds())
	}
	return []any{ids, tokens, outcomes, messageIDs, errors, reaped, statuses, delays, reasons, handed}
}

func lateArgs(finishes []booking.Finish, order []int) []any {
	var (
		ids                [][16]byte
		attempts           []int32
		messageIDs, errors []string
		handed             []int64
	)
	for _, i := range order {
		f := finishes[i]
		ids, attempts = append(ids, f.Push), append(attempts, int32(f.Attempt))
		messageIDs, errors = append(messageIDs, f.ProviderMessageID), append(errors, f.Error)
		handed = append(handed, f.Handed.Microseconds())
	}
	return []any{ids, attempts, messageIDs, errors, handed}
}

// lostSQL walks through the leases that have run out, of each channel.
const lostSQL = channelsSQL + `
	SELECT ` + pushColumns + `, l.token, l.attempts, p.expires_at - clock_timestamp()
	FROM channels c CROSS JOIN LATERAL (
		SELECT * FROM live
		WHERE channel = c.name AND phase = 2 AND next_at < statement_timestamp() AND (recipient_key & 255) = ANY ($2::bigint[])
		ORDER BY next_at LIMIT $1
	) l
	CROSS JOIN LATERAL (SELECT * FROM pushes WHERE id = l.push_id OFFSET 0) p
	LIMIT $1`

// Lost returns up to limit attempts for recipients of some lanes, whose lease has run out, by Postgres' clock. The first
// finish of each ends it.
func (s *Store) Lost(ctx context.Context, lanes []push.Lane, limit int) ([]booking.Lost, error) {
	scan := func(row pgx.CollectableRow) (l booking.Lost, err error) {
		l.Push, err = scanPush(row, (*[16]byte)(&l.Token), &l.Attempt, &l.Left)
		return l, err
	}
	return collect(ctx, s, scan, lostSQL, limit, shardsOf(lanes))
}
