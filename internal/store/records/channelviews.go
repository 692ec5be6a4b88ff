package records

import (
	"context"
	"time"

	"github.com/sendquota/sendquota/internal/store/pg"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/channelhealth"
	"github.com/sendquota/sendquota/internal/pause"
	"github.com/sendquota/sendquota/internal/push"
)

const (
	viewsFresh   = 30 * time.Second // older views of workers are ignored
	attemptsSpan = time.Minute      // attempts that began in this period are counted
)

// stopped is a column of live: whether a pause of sending holds the push, which was due.
const stopped = `pause_id IS NOT NULL AND token IS NULL AS stopped`

// stoppingSQL reads the pauses that stop whole channels of the tenant $1.
const stoppingSQL = `
	SELECT id, coalesce(tenant_id, ` + pg.NoID + `), scope, name, reason, coalesce(until, ` + pg.NoTime + `), created_at FROM pauses
	WHERE coalesce(tenant_id, ` + pg.NoID + `) IN ($1, ` + pg.NoID + `) AND ended_at IS NULL AND (until > statement_timestamp()) IS NOT FALSE AND scope IN ($2, $3)`

// ReplaceChannelViews replaces a worker's views of its channels, and deletes the views that other workers have not renewed
// for a minute.
func (s *Store) ReplaceChannelViews(ctx context.Context, worker uuid.UUID, views []channelhealth.View) error {
	names, tenants := make([]string, len(views)), make([]uuid.UUID, len(views))
	states, held := make([]string, len(views)), make([]time.Duration, len(views))
	for i, v := range views {
		names[i], tenants[i], states[i], held[i] = v.Channel, v.Tenant, string(v.State), v.Held
	}
	return s.db.InTx(ctx, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		b := &pgx.Batch{}
		b.Queue(`
			INSERT INTO channel_views (worker, channel, tenant_id, state, held_until, seen_at)
			SELECT $1, v.channel, v.tenant, v.state, statement_timestamp() + nullif(v.held, '0'), statement_timestamp()
			FROM unnest($2::text[], $3::uuid[], $4::text[], $5::interval[]) AS v (channel, tenant, state, held)
			ON CONFLICT (worker, channel, tenant_id) DO UPDATE SET state = excluded.state, held_until = excluded.held_until, seen_at = excluded.seen_at`,
			worker, names, tenants, states, held)
		b.Queue(`
			DELETE FROM channel_views v WHERE v.worker = $1
				AND NOT EXISTS (SELECT FROM unnest($2::text[], $3::uuid[]) AS n (channel, tenant) WHERE n.channel = v.channel AND n.tenant = v.tenant_id)`,
			worker, names, tenants)
		b.Queue(`
			DELETE FROM channel_views v USING (
				SELECT worker, channel, tenant_id FROM channel_views WHERE seen_at < statement_timestamp() - interval '1 minute' FOR UPDATE SKIP LOCKED
			) old WHERE v.worker = old.worker AND v.channel = old.channel AND v.tenant_id = old.tenant_id`)
		return c.SendBatch(ctx, b).Close()
	})
}

// DeleteChannelViews deletes the views of a worker that stops.
func (s *Store) DeleteChannelViews(ctx context.Context, worker uuid.UUID) error {
	return s.db.InTx(ctx, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		_, err := c.Exec(ctx, `DELETE FROM channel_views WHERE worker = $1`, worker)
		return err
	})
}

// ChannelHealth returns the workers' views of the channels, both for all tenants and for this one. For each channel
// it also counts the tenant's due pushes by level, those that a pause of sending holds, the attempts that began in the last minute and have ended, and the outcomes
// of the last five minutes. It stops at 100,000 pushes and at 100,000 attempts, and then reports that the counts are
// not complete.
func (s *Store) ChannelHealth(ctx context.Context, tenant uuid.UUID) (r channelhealth.Report, err error) {
	err = s.db.Read(ctx, tenant, func(ctx context.Context, c pg.Reader) error {
		var waiting, attempts int
		r = channelhealth.Report{Channels: map[string]*channelhealth.Health{}}
		now, b := time.Now(), &pgx.Batch{}
		b.Queue(`
			SELECT channel, state, max(held_until), max(seen_at) FROM channel_views
			WHERE tenant_id IN ($2, $3) AND seen_at > statement_timestamp() - $1::interval GROUP BY channel, state`,
			viewsFresh, uuid.Nil, tenant).Query(func(rows pgx.Rows) error { return readViews(rows, &r) })
		b.Queue(`
			SELECT channel, rank / 2, count(*) FILTER (WHERE waits), min(next_at) FILTER (WHERE waits), count(*) FILTER (WHERE stopped), count(*) FROM (
				SELECT coalesce('*' || own_channel, channel) AS channel, rank, next_at, next_at <= statement_timestamp() AND token IS NULL AS waits, `+stopped+` FROM live
				WHERE tenant_id = $1 AND (send_at AT TIME ZONE 'UTC') <= (statement_timestamp() AT TIME ZONE 'UTC') LIMIT $2
			) p GROUP BY channel, rank / 2`, tenant, pg.MostCounted).Query(func(rows pgx.Rows) error { return readWaiting(rows, &r, &waiting) })
		b.Queue(stoppingSQL, tenant, string(pause.All), string(pause.Channel)).Query(func(rows pgx.Rows) (err error) {
			r.Pauses, err = pgx.CollectRows(rows, pgx.RowToStructByPos[pause.Pause])
			return err
		})
		b.Queue(pg.In(`
			SELECT s.channel, s.outcome, count(*) FILTER (WHERE (own.created_at > s.started_at) IS NOT TRUE), count(*) FROM (
				SELECT channel, outcome, started_at FROM {sends} s
				WHERE tenant_id = $1 AND outcome || '' <> '' AND started_at > statement_timestamp() - $2::interval LIMIT $3
			) s LEFT JOIN tenant_channels own ON own.tenant_id = $1 AND own.name = s.channel -- earlier attempts went through the operator's
			GROUP BY 1, 2`, "{sends}", s.db.Layouts.Sends().All(now.Add(-2*attemptsSpan), now.Add(attemptsSpan))...), tenant, attemptsSpan, pg.MostCounted).
			Query(func(rows pgx.Rows) error { return readAttempts(rows, &r, &attempts) })
		b.Queue(outcomesSQL+` AND tenant_id = $2 GROUP BY tenant_id, channel`, channelhealth.OutcomesSpan, tenant).Query(func(rows pgx.Rows) error { return readOutcomes(rows, &r) })
		err := c.SendBatch(ctx, b).Close()
		r.Complete = waiting < pg.MostCounted && attempts < pg.MostCounted
		return err
	})
	return r, err
}

// readViews takes the worst state of each channel from the views of all workers.
func readViews(rows pgx.Rows, r *channelhealth.Report) error {
	var (
		name, state string
		until       time.Time
		seen        time.Time
	)
	_, err := pgx.ForEachRow(rows, []any{&name, &state, (*zeronull.Timestamptz)(&until), &seen}, func() error {
		h := r.Of(name)
		if s := channelhealth.State(state); s.Worse(h.State) {
			h.State, h.Until, h.AsOf = s, until, seen
		}
		return nil
	})
	return err
}

// readWaiting reads the due pushes of each channel, and adds the rows that Postgres read to scanned.
func readWaiting(rows pgx.Rows, r *channelhealth.Report, scanned *int) error {
	var (
		name                   string
		level, waits, stops, n int
		oldest                 time.Time
	)
	_, err := pgx.ForEachRow(rows, []any{&name, &level, &waits, (*zeronull.Timestamptz)(&oldest), &stops, &n}, func() error {
		h := r.Of(name)
		h.Waiting[level] = channelhealth.Backlog{Level: push.Levels[level], Waiting: waits, Oldest: oldest}
		h.Stopped[level] = stops
		*scanned += n
		return nil
	})
	return err
}

// readAttempts reads the attempts of each channel by outcome, and adds them to scanned.
func readAttempts(rows pgx.Rows, r *channelhealth.Report, scanned *int) error {
	var (
		name, outcome string
		n, all        int
	)
	_, err := pgx.ForEachRow(rows, []any{&name, &outcome, &n, &all}, func() error {
		r.Of(name).Attempts[push.Outcome(outcome)] = n
		*scanned += all
		return nil
	})
	return err
}

// ChannelBacklogs counts the due pushes that wait for some channels, by level and tenant. It stops at 100,000 pushes of each
// channel and rank.
func (s *Store) ChannelBacklogs(ctx context.Context, channels []string) (all map[string][]channelhealth.Backlog, err error) {
	err = s.db.Read(ctx, uuid.Nil, func(ctx context.Context, c pg.Reader) error {
		all = map[string][]channelhealth.Backlog{}
		rows, _ := c.Query(ctx, `
			SELECT c.name, k.phase / 2, p.tenant_id, count(*) FROM unnest($1::text[]) AS c (name) CROSS JOIN `+pg.Ranks+` CROSS JOIN LATERAL (
				SELECT tenant_id FROM live WHERE channel = c.name AND phase = k.phase AND next_at <= statement_timestamp() LIMIT $2
			) p GROUP BY 1, 2, 3`, channels, pg.MostCounted)
		var (
			name  string
			level int
			of    channelhealth.Backlog
		)
		_, err := pgx.ForEachRow(rows, []any{&name, &level, &of.Tenant, &of.Waiting}, func() error {
			of.Level = push.Levels[level]
			all[name] = append(all[name], of)
			return nil
		})
		return err
	})
	return all, err
}
