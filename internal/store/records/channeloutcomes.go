package records

import (
	"context"
	"fmt"

	"github.com/sendquota/sendquota/internal/store/pg"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/channelhealth"
	"github.com/sendquota/sendquota/internal/webhook"
)

// outcomesSQL adds up the outcomes that all workers counted in the last minutes.
const outcomesSQL = `
	SELECT tenant_id, channel, sum(attempts)::int AS attempts, sum(rejected)::int AS rejected, sum(failed)::int AS failed FROM channel_outcomes
	WHERE minute > statement_timestamp() - $1::interval`

// outcomesState is [channelhealth.Outcomes.State] in SQL.
var outcomesState = fmt.Sprintf(`CASE WHEN attempts < %[1]d THEN 'working' WHEN failed * %[2]d > attempts THEN 'failing' WHEN rejected * %[2]d > attempts THEN 'rejecting' ELSE 'working' END`,
	channelhealth.MinAttempts, channelhealth.PoorShare)

// CountOutcomes adds a worker's counts to the outcomes of the current minute, and deletes outcomes that are older
// than ten minutes.
func (s *Store) CountOutcomes(ctx context.Context, worker uuid.UUID, counts []channelhealth.Outcomes) error {
	tenants, channels := make([]uuid.UUID, len(counts)), make([]string, len(counts))
	attempts, rejected, failed := make([]int32, len(counts)), make([]int32, len(counts)), make([]int32, len(counts))
	for i, c := range counts {
		tenants[i], channels[i], attempts[i], rejected[i], failed[i] = c.Tenant, c.Channel, int32(c.Attempts), int32(c.Rejected), int32(c.Failed)
	}
	return s.db.InTx(ctx, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		b := &pgx.Batch{}
		b.Queue(`
			INSERT INTO channel_outcomes AS o (tenant_id, channel, minute, worker, attempts, rejected, failed)
			SELECT n.tenant, n.channel, date_trunc('minute', statement_timestamp()), $1, n.attempts, n.rejected, n.failed
			FROM unnest($2::uuid[], $3::text[], $4::int[], $5::int[], $6::int[]) AS n (tenant, channel, attempts, rejected, failed)
			ON CONFLICT (tenant_id, channel, minute, worker) DO UPDATE SET
				attempts = o.attempts + excluded.attempts, rejected = o.rejected + excluded.rejected, failed = o.failed + excluded.failed`,
			worker, tenants, channels, attempts, rejected, failed)
		b.Queue(`
			DELETE FROM channel_outcomes WHERE ctid IN (
				SELECT ctid FROM channel_outcomes WHERE minute < statement_timestamp() - interval '10 minutes' LIMIT 10000 FOR UPDATE SKIP LOCKED)`)
		return c.SendBatch(ctx, b).Close()
	})
}

// readOutcomes adds the outcomes of a tenant to a report. If workers report a better state of a channel than the
// outcomes, the state becomes the outcomes' state.
func readOutcomes(rows pgx.Rows, r *channelhealth.Report) error {
	counts, err := pgx.CollectRows(rows, pgx.RowToStructByPos[channelhealth.Outcomes])
	for _, c := range counts {
		h := r.Of(c.Channel)
		if h.Recent = c; h.State != "" && c.State().Worse(h.State) {
			h.State = c.State()
		}
	}
	return err
}

// ChannelRates returns, by channel, the outcomes of the attempts of all tenants in the last minutes. All channels that tenants have made
// are one, [channelhealth.OwnChannel] without a name.
func (s *Store) ChannelRates(ctx context.Context) (rates map[string]channelhealth.Rates, err error) {
	rows, _ := s.db.ReadPool.Query(ctx, `
		SELECT CASE WHEN starts_with(channel, '*') THEN '*' ELSE channel END, sum(attempts)::int, sum(rejected)::int, (count(DISTINCT tenant_id) FILTER (WHERE `+outcomesState+` = 'rejecting'))::int
		FROM (`+outcomesSQL+` GROUP BY tenant_id, channel) o GROUP BY 1`, channelhealth.OutcomesSpan)
	rates = map[string]channelhealth.Rates{}
	var (
		channel string
		one     channelhealth.Rates
	)
	_, err = pgx.ForEachRow(rows, []any{&channel, &one.Attempts, &one.Rejected, &one.Tenants}, func() error {
		rates[channel] = one
		return nil
	})
	return rates, pg.Classify(err)
}

// unhealthySQL records the pairs of tenant and channel that are unhealthy: the tenant's own outcomes are rejecting or
// failing, or workers see the channel failing while the tenant uses it. It writes events for the pairs that are new,
// and returns these pairs. Of several workers, only one inserts a row.
var unhealthySQL = `
	WITH failing AS (
		SELECT channel, tenant_id FROM channel_views WHERE state = 'failing' AND seen_at > statement_timestamp() - $2::interval
	), unhealthy AS (
		SELECT o.*, CASE WHEN EXISTS (SELECT FROM failing f WHERE f.channel = o.channel AND f.tenant_id IN ('00000000-0000-0000-0000-000000000000', o.tenant_id))
			THEN 'failing' ELSE ` + outcomesState + ` END AS state
		FROM (` + outcomesSQL + ` GROUP BY tenant_id, channel) o
	), known AS (
		INSERT INTO unhealthy_channels (tenant_id, channel, since, seen_at)
		SELECT tenant_id, channel, statement_timestamp(), statement_timestamp() FROM unhealthy WHERE state <> 'working' ORDER BY tenant_id, channel
		ON CONFLICT (tenant_id, channel) DO UPDATE SET seen_at = excluded.seen_at
		RETURNING tenant_id, channel, xmax = 0 AS added
	), added AS (
		SELECT tenant_id, channel, attempts, rejected, failed, state
		FROM known JOIN unhealthy USING (tenant_id, channel) WHERE added
	), told AS (
		INSERT INTO webhook_deliveries (webhook_id, tenant_id, event, payload)
		SELECT w.id, a.tenant_id, '` + string(webhook.EventChannelUnhealthy) + `', json_build_object(
			'type', '` + string(webhook.EventChannelUnhealthy) + `', 'timestamp', utc(clock_timestamp()), 'data', json_build_object(
				'channel', ltrim(a.channel, '*'), 'state', a.state, 'attempts', a.attempts, 'rejected', a.rejected, 'failed', a.failed, 'window_seconds', extract(epoch FROM $1::interval)::int))
		FROM added a JOIN webhooks w ON w.tenant_id = a.tenant_id AND w.disabled_at IS NULL AND w.deleted_at IS NULL AND '` + string(webhook.EventChannelUnhealthy) + `' = ANY (w.events)
	)
	SELECT tenant_id, ltrim(channel, '*'), attempts, rejected, failed, state FROM added`

// NotifyUnhealthy writes an event for each pair of tenant and channel that has become unhealthy, and returns these
// pairs. A pair is reported again only after the channel was healthy for five minutes.
func (s *Store) NotifyUnhealthy(ctx context.Context) (unhealthy []channelhealth.Unhealthy, err error) {
	err = s.db.InTx(ctx, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		unhealthy = nil
		b := &pgx.Batch{}
		b.Queue(`
			DELETE FROM unhealthy_channels WHERE (tenant_id, channel) IN (
				SELECT tenant_id, channel FROM unhealthy_channels WHERE seen_at < statement_timestamp() - $1::interval FOR UPDATE SKIP LOCKED)`, channelhealth.OutcomesSpan)
		b.Queue(unhealthySQL, channelhealth.OutcomesSpan, viewsFresh).Query(func(rows pgx.Rows) (err error) {
			unhealthy, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (u channelhealth.Unhealthy, err error) {
				err = row.Scan(&u.Tenant, &u.Channel, &u.Attempts, &u.Rejected, &u.Failed, (*string)(&u.State))
				return u, err
			})
			return err
		})
		return c.SendBatch(ctx, b).Close()
	})
	return unhealthy, err
}
