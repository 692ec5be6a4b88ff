package attempts

import (
	"context"
	"time"

	"github.com/sendquota/sendquota/internal/store/pg"
	"github.com/sendquota/sendquota/internal/store/pushes"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
)

// lateLiveSQL reads due pushes of the lanes that have expired, for all channels, configured or not.
const lateLiveSQL = pg.ChannelsSQL + `
	SELECT p.recipient_key, p.push_id, p.send_at
	FROM channels c CROSS JOIN ` + pg.Ranks + ` CROSS JOIN unnest($2::bigint[], $3::bigint[]) AS l (first, last) CROSS JOIN LATERAL (
		SELECT recipient_key, send_at, push_id FROM live
		WHERE {shard} channel = c.name AND phase = k.phase AND (recipient_key & 255) BETWEEN l.first AND l.last
			AND next_at <= statement_timestamp() AND expires_at <= statement_timestamp()
		ORDER BY next_at LIMIT $1
	) p
	LIMIT $1`

// nextExpirySQL finds the first expiry of the lanes' pushes that became due after a time.
const nextExpirySQL = pg.ChannelsSQL + `
	SELECT min(p.expires_at), statement_timestamp()
	FROM channels c CROSS JOIN ` + pg.Ranks + ` CROSS JOIN unnest($1::bigint[], $2::bigint[]) AS l (first, last) CROSS JOIN LATERAL (
		SELECT min(expires_at) AS expires_at FROM live
		WHERE {shard} channel = c.name AND phase = k.phase AND (recipient_key & 255) BETWEEN l.first AND l.last
			AND next_at > $3 AND next_at <= statement_timestamp()
	) p`

// expireSQL ends expired pushes. It skips pushes that other transactions have locked, or changed since they were found.
var expireSQL = pushes.Ending{
	Before: `late AS MATERIALIZED (
		SELECT l.recipient_key, l.send_at, l.push_id
		FROM unnest($2::bigint[], $3::timestamptz[], $4::uuid[]) AS n (recipient_key, send_at, id)
		CROSS JOIN LATERAL (
			SELECT recipient_key, send_at, push_id FROM live
			WHERE shard = ANY ($5::smallint[]) AND recipient_key = n.recipient_key AND send_at = n.send_at AND push_id = n.id
				AND token IS NULL AND next_at <= statement_timestamp() AND expires_at <= statement_timestamp()
			FOR UPDATE SKIP LOCKED
		) l
	), `,
	Rows: `USING late
		WHERE l.shard = ANY ($5::smallint[]) AND l.recipient_key = ANY (ARRAY[late.recipient_key]) AND l.send_at = late.send_at AND l.push_id = late.push_id`,
	Shards: `$5`, Status: push.Expired,
	Reason: `concat_ws(': ', 'it expired before it could be sent',
		CASE WHEN own_channel IS NULL AND channel <> ALL ($1::text[]) THEN 'its channel is not configured any more'
			WHEN EXISTS (SELECT FROM tenant_channels c WHERE c.tenant_id = p.tenant_id AND c.name = taken.own_channel AND c.disabled) THEN 'its channel is disabled'
			ELSE nullif(last_error, '') END)`,
	Columns: pushes.EndedSQL,
}.SQL()

// NextExpiry returns the first expiry, possibly past, of waiting pushes in some lanes that became due after since; zero if
// there is none. now is the time of Postgres' clock before the read; zero if there are no lanes.
func (s *Store) NextExpiry(ctx context.Context, lanes []push.Lane, since time.Time) (next, now time.Time, err error) {
	for lanes := range s.db.InTurn(lanes) {
		var (
			first *time.Time
			at    time.Time
		)
		firsts, lasts := pg.RangesOf(lanes)
		err := s.db.InTx(ctx, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
			return c.QueryRow(ctx, pg.InShard(nextExpirySQL, "($1::bigint[])[1]", lanes...), firsts, lasts, since).Scan(&first, &at)
		})
		if err != nil {
			return next, now, err
		}
		if first != nil && (next.IsZero() || first.Before(next)) {
			next = *first
		}
		if now.IsZero() {
			now = at
		}
	}
	return next, now, nil
}

// Expire ends up to limit waiting pushes in some lanes that have expired, and returns them.
func (s *Store) Expire(ctx context.Context, lanes []push.Lane, limit int) ([]booking.Ended, error) {
	var ended []booking.Ended
	for lanes := range s.db.InTurn(lanes) {
		now, err := s.expire(ctx, lanes, limit-len(ended))
		if ended = append(ended, now...); err != nil || len(ended) == limit {
			return ended, err
		}
	}
	return ended, nil
}

func (s *Store) expire(ctx context.Context, lanes []push.Lane, limit int) ([]booking.Ended, error) {
	firsts, lasts := pg.RangesOf(lanes)
	var ended []booking.Ended
	err := s.db.InTx(ctx, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
		rows, _ := c.Query(ctx, pg.InShard(lateLiveSQL, "($2::bigint[])[1]", lanes...), limit, firsts, lasts)
		late, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (l pushes.LiveRow, err error) {
			err = row.Scan(&l.Key, &l.ID, &l.SendAt)
			return l, err
		})
		if err != nil {
			return err
		}
		weeks := s.db.Layouts.Pushes()
		for table, at := range pg.ByTable(late, func(l pushes.LiveRow) string { return weeks.At(l.SendAt) }) {
			var r pushes.LiveRows
			for _, i := range at {
				r.Add(late[i])
			}
			rows, _ := c.Query(ctx, pg.In(s.db.Joining(expireSQL), "{pushes}", table), s.db.Cfg.Channels, r.Keys, r.SendAt, r.IDs, pg.ShardsOf(r.Keys...))
			if ended, err = pgx.AppendRows(ended, rows, CollectEnded); err != nil {
				return err
			}
		}
		return nil
	})
	return ended, err
}

// CollectEnded reads one row of [pushes.EndedSQL].
func CollectEnded(row pgx.CollectableRow) (e booking.Ended, err error) {
	err = row.Scan(&e.ID, &e.Tenant, &e.Recipient, &e.Kind.Channel, &e.Kind.Category, &e.RequestID)
	return e, err
}

// Backlog counts the due pushes that wait, up to [pg.MostCounted], and returns for how long the oldest has been due.
func (s *Store) Backlog(ctx context.Context) (pushes int, oldest time.Duration, err error) {
	due := func(what, rest string) string {
		return `(SELECT ` + what + ` FROM channels c CROSS JOIN ` + pg.Ranks + ` CROSS JOIN LATERAL (
			SELECT next_at FROM live WHERE channel = c.name AND phase = k.phase AND next_at <= statement_timestamp() ` + rest + `)`
	}
	err = s.db.ReadPool.QueryRow(ctx, pg.InAllShards(pg.ChannelsSQL)+`
		SELECT (SELECT count(*) FROM `+due(``, `LIMIT $1) p LIMIT $1`)+` counted),
			coalesce(clock_timestamp() - `+due(`min(p.next_at)`, `ORDER BY next_at LIMIT 1) p`)+`, '0')`, pg.MostCounted).Scan(&pushes, &oldest)
	return pushes, oldest, pg.Classify(err)
}

// Overdue returns for how long the oldest due push of a configured channel has been due; 0 if none is due. Channels of tenants do
// not count: a tenant may make a slow one, or disable it.
func (s *Store) Overdue(ctx context.Context) (d time.Duration, err error) {
	err = s.db.ReadPool.QueryRow(ctx, pg.InAllShards(pg.ChannelsSQL)+`
		SELECT coalesce(clock_timestamp() - min(p.next_at), '0')
		FROM channels c CROSS JOIN `+pg.Ranks+` CROSS JOIN LATERAL (
			SELECT next_at FROM live
			WHERE channel = c.name AND phase = k.phase AND next_at <= statement_timestamp()
			ORDER BY next_at LIMIT 1
		) p
		WHERE c.name <> '`+booking.OwnRoute+`' AND `+pg.Configured, s.db.Cfg.Channels).Scan(&d)
	return d, pg.Classify(err)
}
