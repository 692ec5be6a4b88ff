package attempts

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/sendquota/sendquota/internal/store/pg"
	"github.com/sendquota/sendquota/internal/store/pushes"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/failpoint"
	"github.com/sendquota/sendquota/internal/push"
)

// finishSQL ends attempts whose tokens are still valid: it removes their rows from live, or makes them wait again, and
// then writes the outcome to pushes and sends. If an earlier attempt of the push was delivered after all, the push counts
// as sent, whatever the outcome of this attempt.
var finishSQL = pushes.WithEventsAndCounts(`
	WITH n AS MATERIALIZED (
		SELECT n.*, d.delivered, CASE WHEN d.delivered THEN {segments} WHEN n.status = 'sent' THEN n.segments END AS counted
		FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::bool[], $7::text[], $8::bigint[], $9::text[], $10::bigint[],
				$11::bigint[], $12::timestamptz[], $14::int[])
			AS n (id, token, outcome, provider_message_id, error, reaped, status, delay_us, reason, handed_us, recipient_key, send_at, segments)
		CROSS JOIN LATERAL (SELECT n.status <> 'sent' AND {delivered} AS delivered) d
	), over AS (
		DELETE FROM live l USING n
		WHERE l.shard = ANY ($13::smallint[]) AND l.recipient_key = ANY (ARRAY[n.recipient_key]) AND l.send_at = n.send_at AND l.push_id = n.id
			AND l.token = n.token AND (n.status <> 'scheduled' OR n.delivered)
		RETURNING l.push_id, l.attempts, l.started_at, l.next_at AS lease_until, l.more_due, l.address_key,
			CASE WHEN n.delivered THEN 'sent' ELSE n.status END AS status, NULL::timestamptz AS next_at,
			n.outcome, n.provider_message_id, n.error, n.reaped, CASE WHEN n.delivered THEN '' ELSE n.reason END AS reason, n.handed_us, n.segments, n.counted
	), waits AS (
		UPDATE live l SET phase = l.rank, token = NULL, started_at = NULL, address_key = NULL, put_off_at = NULL, plan = l.plan + 1,
			next_at = statement_timestamp() + n.delay_us * interval '1 microsecond'
		FROM n CROSS JOIN LATERAL (
			SELECT started_at, next_at, address_key FROM live
			WHERE shard = ANY ($13::smallint[]) AND recipient_key = n.recipient_key AND send_at = n.send_at AND push_id = n.id OFFSET 0
		) old
		WHERE l.shard = ANY ($13::smallint[]) AND l.recipient_key = ANY (ARRAY[n.recipient_key]) AND l.send_at = n.send_at AND l.push_id = n.id
			AND l.token = n.token AND n.status = 'scheduled' AND NOT n.delivered
		RETURNING l.push_id, l.attempts, old.started_at, old.next_at, l.more_due, old.address_key, n.status, l.next_at,
			n.outcome, n.provider_message_id, n.error, n.reaped, n.reason, n.handed_us, n.segments, n.counted
	), ended AS (
		UPDATE {pushes} p SET
			status = o.status, freed = o.status = 'failed', plan = p.plan + 1, attempts = o.attempts, next_at = coalesce(o.next_at, p.next_at),
			attempted_at = coalesce(p.attempted_at, o.started_at),
			last_error = `+pushes.UnlessErased(`o.reason`, `p.recipient`)+`, possibly_delivered = p.possibly_delivered OR o.outcome = 'unknown', updated_at = statement_timestamp()
		FROM (SELECT * FROM over UNION ALL SELECT * FROM waits) o
		WHERE p.shard = ANY ($13::smallint[]) AND p.id = o.push_id
		RETURNING p.id, p.tenant_id, p.recipient_key, p.recipient, p.channel, p.category, p.level, p.campaign_id, p.retry_of, p.send_at, o.*{whole}
	), fewer AS (`+pushes.RenewCrowdsSQL+`(SELECT recipient_key FROM ended WHERE status = 'failed')), recorded AS (
		INSERT INTO sends (shard, push_id, attempt, tenant_id, recipient_key, recipient, channel, category, started_at, lease_until,
			ended_at, handed_at, outcome, provider_message_id, error, campaign_id, send_at, segments, address_key)
		SELECT recipient_key & 255, id, attempts, tenant_id, recipient_key, recipient, channel, category, started_at, lease_until,
			CASE WHEN reaped THEN lease_until ELSE statement_timestamp() END,
			CASE WHEN handed_us > 0 AND outcome = 'delivered' THEN least(started_at + handed_us * interval '1 microsecond', statement_timestamp()) END,
			outcome, CASE WHEN recipient = '' THEN '' ELSE provider_message_id END, `+pushes.UnlessErased(`error`, `recipient`)+`, campaign_id, send_at, nullif(segments, 0), CASE WHEN recipient <> '' THEN address_key END
		FROM ended
	){events}
	SELECT id, more_due FROM ended`, `ended`, `CASE status WHEN 'scheduled' THEN `+pushes.DeferredEvent+` ELSE 'push.' || status END`,
	"", pushes.CountEnded(`(
		SELECT tenant_id AS of_tenant, recipient_key AS of_key, channel AS of_channel, category AS of_category, level AS of_level, `+pushes.CountedCampaign+` AS of_campaign, send_at AS of_send_at,
			status AS of_status, statement_timestamp() AS of_end, counted AS of_segments, started_at, lease_until, handed_us, outcome, reaped FROM ended
	) e`, `CASE WHEN handed_us > 0 AND outcome = 'delivered' THEN least(started_at + handed_us * interval '1 microsecond', of_end) WHEN reaped THEN lease_until ELSE of_end END`))

// Finish ends an attempt, in one transaction with concurrent finishes. It reports whether another push of the recipient
// may be waiting for that.
func (s *Store) Finish(ctx context.Context, f booking.Finish) (more bool, err error) {
	return s.finishGroups.Do(f)
}

func (s *Store) finishTogether(ctx context.Context, finishes []booking.Finish) ([]bool, error) {
	rounds := finishRounds(finishes)
	more := map[uuid.UUID]bool{}
	rerun := false // the attempts that an earlier run ended return no rows, so report that a push may wait
	err := s.db.InTx(ctx, func(ctx context.Context, c *pgxpool.Conn, earlier int) error {
		rerun = earlier > 0
		for _, round := range rounds {
			if err := s.finish(ctx, c, finishes, round, more); err != nil {
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

// finishRounds sorts finishes by push id, as all groups lock rows, to prevent deadlocks. If there are two finishes of a
// push, one from a worker and one from the reaper, the second goes into a later round: a statement with two for one row
// would carry out either.
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

// finish runs one round, and records in more, by push id, that another push of the recipient waits. Pushes that end and
// pushes that wait again have statements of their own, so that each statement locks rows in order.
func (s *Store) finish(ctx context.Context, c *pgxpool.Conn, finishes []booking.Finish, round []int, more map[uuid.UUID]bool) error {
	var ends, waits, again []int
	for _, i := range round {
		if finishes[i].Resolution.Status == push.Scheduled {
			waits = append(waits, i)
		} else {
			ends = append(ends, i)
		}
		if finishes[i].Number > 1 {
			again = append(again, i)
		}
	}
	delivered, segments := `false`, `0`
	if len(again) > 0 {
		tables, err := s.attemptTables(ctx, c, finishes, again)
		if err != nil {
			return err
		}
		delivered = pg.In(s.db.Joining(deliveredSQL("$13")), "{sends}", tables...)
		segments = pg.In(s.db.Joining(deliveredSegmentsSQL("$13")), "{sends}", tables...)
	}
	ended := map[uuid.UUID]bool{}
	for _, part := range [][]int{ends, waits} {
		for table, at := range pg.ByTable(part, func(i int) string { return s.db.Layouts.Pushes().At(finishes[i].SendAt) }) {
			order := make([]int, len(at))
			for n, at := range at {
				order[n] = part[at]
			}
			rows, _ := c.Query(ctx, pg.In(pg.In(pg.In(s.db.Joining(finishSQL), "{pushes}", table), "{delivered}", delivered), "{segments}", segments), finishArgs(finishes, order)...)
			failpoint.Hit(failpoint.FinishWriting)
			var (
				id      uuid.UUID
				waiting bool
			)
			_, err := pgx.ForEachRow(rows, []any{&id, &waiting}, func() error {
				more[id] = more[id] || waiting
				ended[id] = true
				return nil
			})
			if err != nil {
				return err
			}
		}
	}
	return s.settle(ctx, c, finishes, round, ended)
}

// attemptTables returns the tables that hold all attempts of some finishes' pushes.
func (s *Store) attemptTables(ctx context.Context, c *pgxpool.Conn, finishes []booking.Finish, of []int) ([]string, error) {
	since, until := s.recently(0)
	var ids []pushes.Ref
	for _, i := range of {
		ids = append(ids, pushes.RefOf(finishes[i].Push, finishes[i].RecipientKey))
	}
	pushes, err := s.pushes.ReadPushes(ctx, c, ids)
	if err != nil {
		return nil, err
	}
	for _, p := range pushes {
		if p.Since.Before(since) {
			since = p.Since
		}
	}
	return s.db.Layouts.Sends().All(since, until), nil
}

func finishArgs(finishes []booking.Finish, order []int) []any {
	var (
		ids, tokens                                     []uuid.UUID
		outcomes, messageIDs, errors, statuses, reasons []string
		reaped                                          []bool
		delays, handed, keys                            []int64
		sendAt                                          []time.Time
		segments                                        []int32
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
		keys, sendAt, segments = append(keys, f.RecipientKey), append(sendAt, f.SendAt), append(segments, int32(f.Segments))
	}
	return []any{ids, tokens, outcomes, messageIDs, errors, reaped, statuses, delays, reasons, handed, keys, sendAt, pg.ShardsOf(keys...), segments}
}
