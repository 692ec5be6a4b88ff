package attempts

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/store/pg"
)

// Each channel of a tenant has a queue of its own in the workers. They are too many to search them all, so a worker finds in
// three ways that it needs a queue: by the pushes of all channels of tenants that have just become due ([Store.Due] with
// [booking.OwnRoute]), by claims that leave other routes out, and by OwnRoutes, which finds what the others have missed.

// ownDueSQL reads the due pushes of channels of tenants, each a page of one level.
const ownDueSQL = `
	SELECT p.recipient_key, c.tenant, '` + booking.OwnRoute + `', p.next_at, k.phase, c.name
	FROM unnest($1::uuid[], $2::text[], $3::int[], $4::timestamptz[], $5::bigint[], $6::smallint[], $7::int[]) AS c (tenant, name, level, behind_at, behind_key, behind_rank, most)
	JOIN ` + pg.Ranks + ` ON k.phase / 2 = c.level
	CROSS JOIN LATERAL (
		SELECT recipient_key, next_at FROM live
		WHERE tenant_id = c.tenant AND own_channel = c.name AND phase = k.phase AND channel = '` + booking.OwnRoute + `' AND next_at <= statement_timestamp()
			AND (next_at, recipient_key & 255, recipient_key >> 8) > (
				CASE WHEN k.phase = c.behind_rank THEN c.behind_at WHEN k.phase > c.behind_rank THEN '-infinity' ELSE 'infinity' END, c.behind_key & 255, c.behind_key >> 8)
			AND (recipient_key & 255) = ANY ($8::bigint[]) AND recipient_key <> ALL ($9::bigint[])
		ORDER BY next_at, recipient_key & 255, recipient_key >> 8 LIMIT c.most
	) p
	ORDER BY c.tenant, c.name, k.phase, p.next_at, p.recipient_key & 255, p.recipient_key >> 8`

// OwnDue returns pushes through channels of tenants that are due in some lanes: of each channel those of its level, in the
// order of their ranks and times. It takes no locks.
func (s *Store) OwnDue(ctx context.Context, o booking.OwnDueOrder) (due []booking.Due, err error) {
	if len(o.Channels) == 0 {
		return nil, nil
	}
	var (
		n       = len(o.Channels)
		tenants = make([]uuid.UUID, n)
		names   = make([]string, n)
		levels  = make([]int32, n)
		at      = make([]time.Time, n)
		keys    = make([]int64, n)
		ranks   = make([]int16, n)
		most    = make([]int32, n)
	)
	for i, c := range o.Channels {
		tenants[i], names[i], _ = booking.OwnerOf(c.Name)
		levels[i], most[i] = int32(c.Levels[0].Index()), int32(c.Most)
		at[i], keys[i], ranks[i] = c.Behind.At, c.Behind.RecipientKey, int16(c.Behind.Rank)
	}
	without := append([]int64{}, o.Without...) // never null
	return pg.Collect(ctx, s.db, scanDue, ownDueSQL, tenants, names, levels, at, keys, ranks, most, pg.ShardsIn(o.Lanes), without)
}

// ownRoutesSQL walks along the channels of tenants that have pushes.
const ownRoutesSQL = `
	WITH RECURSIVE walk (tenant, name) AS (
		(SELECT tenant_id, own_channel FROM live WHERE own_channel IS NOT NULL AND (tenant_id, own_channel) > ($1::uuid, $2::text) ORDER BY tenant_id, own_channel LIMIT 1)
		UNION ALL
		SELECT n.tenant_id, n.own_channel FROM walk CROSS JOIN LATERAL (
			SELECT tenant_id, own_channel FROM live WHERE own_channel IS NOT NULL AND (tenant_id, own_channel) > (walk.tenant, walk.name) ORDER BY tenant_id, own_channel LIMIT 1
		) n
	)
	SELECT tenant, name, EXISTS (SELECT FROM ` + pg.Ranks + ` CROSS JOIN LATERAL (
		SELECT FROM live
		WHERE tenant_id = w.tenant AND own_channel = w.name AND phase = k.phase AND channel = '` + booking.OwnRoute + `' AND next_at <= statement_timestamp()
			AND (recipient_key & 255) = ANY ($4::bigint[])
		ORDER BY next_at LIMIT 1
	) due) FROM (SELECT * FROM walk LIMIT $3) w`

// OwnRoutes looks at up to limit channels of tenants after a route, in their order, and returns the routes of those with
// pushes that are due in some lanes. last is the last channel that it has looked at; "" if there are no others.
func (s *Store) OwnRoutes(ctx context.Context, o booking.OwnRoutesOrder) (due []string, last string, err error) {
	tenant, name, _ := booking.OwnerOf(o.After)
	type found struct {
		Tenant uuid.UUID
		Name   string
		Due    bool
	}
	all, err := pg.Collect(ctx, s.db, pgx.RowToStructByPos[found], ownRoutesSQL, tenant, name, o.Limit, pg.ShardsIn(o.Lanes))
	for _, f := range all {
		route := booking.RouteTo(f.Tenant, f.Name)
		if f.Due {
			due = append(due, route)
		}
		if last = route; len(all) < o.Limit {
			last = ""
		}
	}
	return due, last, err
}
