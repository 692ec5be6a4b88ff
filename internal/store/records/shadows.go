package records

import (
	"context"
	"time"

	"github.com/sendquota/sendquota/internal/store/pg"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/policy"
)

// Shadows counts a tenant's pushes that shadow rules would have refused, submitted in the minutes from one time until
// before another.
func (s *Store) Shadows(ctx context.Context, tenant uuid.UUID, from, until time.Time) (all []policy.ShadowCount, err error) {
	err = s.db.Read(ctx, tenant, func(ctx context.Context, c pg.Reader) error {
		rows, _ := c.Query(ctx, `
			SELECT rule, category, sum(would_refuse)::bigint FROM policy_shadows
			WHERE tenant_id = $1 AND minute >= date_trunc('minute', $2::timestamptz) AND minute < $3
			GROUP BY rule, category ORDER BY rule, category LIMIT $4`, tenant, from, until, policy.MaxShadows)
		all, err = pgx.CollectRows(rows, pgx.RowToStructByPos[policy.ShadowCount])
		return err
	})
	return all, err
}

// AddShadows adds to the counts of shadow rules. If it fails, the counts may or may not have been added.
func (s *Store) AddShadows(ctx context.Context, counts []booking.ShadowCount) error {
	n := len(counts)
	var (
		tenants           = make([]uuid.UUID, n)
		minutes           = make([]time.Time, n)
		rules, categories = make([]string, n), make([]string, n)
		numbers           = make([]int64, n)
	)
	for i, c := range counts {
		tenants[i], minutes[i], rules[i], categories[i], numbers[i] = c.Tenant, c.Minute.UTC().Truncate(time.Minute), c.Rule, c.Category, int64(c.Pushes)
	}
	ctx, cancel := context.WithTimeout(ctx, s.db.Cfg.Timeout)
	defer cancel()
	return pg.Classify(pg.OnConn(ctx, s.db.Pool, func(c *pgxpool.Conn) error {
		_, err := c.Exec(ctx, `
			INSERT INTO policy_shadows AS s (tenant_id, minute, rule, category, would_refuse)
			SELECT * FROM unnest($1::uuid[], $2::timestamptz[], $3::text[], $4::text[], $5::bigint[]) n (tenant_id, minute, rule, category, would_refuse)
			ORDER BY 1, 2, 3, 4 -- one order for all writers avoids deadlocks
			ON CONFLICT (tenant_id, minute, rule, category) DO UPDATE SET would_refuse = s.would_refuse + excluded.would_refuse`,
			tenants, minutes, rules, categories, numbers)
		return err
	}))
}

// SweepShadows deletes up to limit counts of minutes older than keep, and returns their number.
func (s *Store) SweepShadows(ctx context.Context, keep time.Duration, limit int) (n int, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.db.Cfg.Timeout)
	defer cancel()
	tag, err := s.db.Pool.Exec(ctx, `
		DELETE FROM policy_shadows WHERE ctid = ANY (ARRAY(
			SELECT ctid FROM policy_shadows WHERE minute < clock_timestamp() - $1::interval LIMIT $2 FOR UPDATE SKIP LOCKED))`, keep, limit)
	return int(tag.RowsAffected()), pg.Classify(err)
}
