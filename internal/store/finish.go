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

// finishSQL ends attempts whose tokens are still valid. Of the others only a late "delivered" is kept: it ends the push
// if that waits to be tried again, or else when the attempt that is under way ends.
const finishSQL = `
	WITH n AS MATERIALIZED (
		SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::int[], $4::text[], $5::text[], $6::text[], $7::bool[], $8::text[], $9::bigint[], $10::text[], $11::bigint[])
			AS n (id, token, attempt, outcome, provider_message_id, error, reaped, status, delay_us, reason, handed_us)
	), ended AS (
		UPDATE pushes p SET
			status = CASE WHEN d.delivered THEN 'sent' ELSE n.status END, gen = p.gen + 1, claim_token = NULL, lease_until = NULL,
			next_at = CASE WHEN n.status = 'scheduled' THEN clock_timestamp() + n.delay_us * interval '1 microsecond' ELSE p.next_at END,
			last_error = CASE WHEN d.delivered THEN '' ELSE n.reason END, possibly_delivered = p.possibly_delivered OR n.outcome = 'unknown', updated_at = clock_timestamp()
		FROM n CROSS JOIN LATERAL (
			SELECT n.status <> 'sent' AND EXISTS (SELECT FROM sends s WHERE s.push_id = n.id AND s.outcome = 'delivered') AS delivered
		) d
		WHERE p.id = n.id AND p.claim_token = n.token AND p.status = 'sending'
		RETURNING p.id, p.more_due, p.recipient_key, p.status
	), fewer AS (` + fewerSQL + `(SELECT recipient_key FROM ended WHERE status = 'failed')), late AS (
		UPDATE pushes p SET status = 'sent', gen = p.gen + 1, last_error = '', updated_at = clock_timestamp()
		FROM n WHERE p.id = n.id AND p.status = 'scheduled' AND n.outcome = 'delivered'
		RETURNING p.id
	), recorded AS (
		UPDATE sends s SET
			ended_at = coalesce(s.ended_at, CASE WHEN n.reaped THEN s.lease_until ELSE clock_timestamp() END),
			handed_at = CASE WHEN n.handed_us > 0 AND n.outcome = 'delivered' THEN least(s.started_at + n.handed_us * interval '1 microsecond', clock_timestamp()) END,
			outcome = n.outcome, provider_message_id = n.provider_message_id, error = n.error
		FROM n WHERE s.push_id = n.id AND s.attempt = n.attempt
			AND (n.outcome = 'delivered' OR s.ended_at IS NULL AND EXISTS (SELECT FROM ended WHERE ended.id = n.id))
	)
	SELECT id, more_due FROM ended UNION ALL SELECT id, false FROM late`

// settleSQL ends pushes that wait although an attempt of theirs was delivered. Two programs that finish attempts of one
// push at the same time each decide by what was committed when they began, so each looks again when it is done: the
// later one sees both.
const settleSQL = `
	UPDATE pushes p SET status = 'sent', gen = p.gen + 1, last_error = '', updated_at = clock_timestamp()
	WHERE p.id = ANY ($1::uuid[]) AND p.status = 'scheduled' AND EXISTS (SELECT FROM sends s WHERE s.push_id = p.id AND s.outcome = 'delivered')`

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

// finish runs one round, and notes which recipients have more that waits.
func finish(ctx context.Context, c *pgxpool.Conn, finishes []booking.Finish, round []int, more map[uuid.UUID]bool) error {
	rows, _ := c.Query(ctx, finishSQL, finishArgs(finishes, round)...)
	failpoint.Hit(failpoint.FinishWriting)
	var (
		id      uuid.UUID
		waiting bool
	)
	ended := map[uuid.UUID]bool{}
	_, err := pgx.ForEachRow(rows, []any{(*[16]byte)(&id), &waiting}, func() error {
		more[id] = more[id] || waiting
		ended[id] = true
		return nil
	})
	if err != nil {
		return err
	}
	var doubtful [][16]byte
	for _, i := range round {
		if f := finishes[i]; f.Outcome == push.Delivered && !ended[f.Push] || f.Outcome != push.Delivered && f.Attempt > 1 && ended[f.Push] {
			doubtful = append(doubtful, f.Push)
		}
	}
	if len(doubtful) > 0 {
		_, err = c.Exec(ctx, settleSQL, doubtful)
	}
	return err
}

func finishArgs(finishes []booking.Finish, order []int) []any {
	var (
		ids, tokens                                     [][16]byte
		attempts                                        []int32
		outcomes, messageIDs, errors, statuses, reasons []string
		reaped                                          []bool
		delays, handed                                  []int64
	)
	for _, i := range order {
		f := finishes[i]
		ids, tokens = append(ids, f.Push), append(tokens, f.Token)
		attempts = append(attempts, int32(f.Attempt))
		outcomes = append(outcomes, string(f.Outcome))
		messageIDs = append(messageIDs, f.ProviderMessageID)
		errors = append(errors, f.Error)
		reaped = append(reaped, f.Reaped)
		statuses = append(statuses, string(f.Resolution.Status))
		delays = append(delays, f.Resolution.Delay.Microseconds())
		reasons = append(reasons, f.Resolution.Reason)
		handed = append(handed, f.Handed.Microseconds())
	}
	return []any{ids, tokens, attempts, outcomes, messageIDs, errors, reaped, statuses, delays, reasons, handed}
}

// Lost returns up to limit attempts for recipients of some lanes, whose lease has run out, by Postgres' clock. The first
// finish of each ends it.
func (s *Store) Lost(ctx context.Context, lanes []push.Lane, limit int) ([]booking.Lost, error) {
	scan := func(row pgx.CollectableRow) (l booking.Lost, err error) {
		l.Push, err = scanPush(row, (*[16]byte)(&l.Token), &l.Attempt, &l.Left)
		return l, err
	}
	return collect(ctx, s, scan, `
		SELECT `+pushColumns+`, p.claim_token, s.attempt, p.expires_at - clock_timestamp()
		FROM sends s JOIN pushes p ON p.id = s.push_id
		WHERE s.ended_at IS NULL AND s.lease_until < statement_timestamp() AND p.status = 'sending'
			AND (s.recipient_key & 255) = ANY ($2::bigint[])
		LIMIT $1`, limit, shardsOf(lanes))
}
