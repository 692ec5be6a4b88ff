package records

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/store/pg"
)

// mostLooked bounds the rows of each kind that UsedCategories reads.
const mostLooked = 10_000

// categoriesSQL reads the categories in the numbers of the tenant $1, or of all tenants: of the last days, of waiting pushes, and those that
// are not counted yet.
const categoriesSQL = `
	SELECT DISTINCT category FROM (
		(SELECT key AS category FROM stats WHERE ` + ofTenant + ` AND step = 'day' AND of = 'category' ORDER BY at DESC LIMIT $2)
		UNION ALL (SELECT category FROM ahead WHERE ` + ofTenant + ` LIMIT $2)
		UNION ALL (SELECT category FROM stat_deltas WHERE ` + ofTenant + ` LIMIT $2)
	) c WHERE category <> '' ORDER BY 1`

const ofTenant = `($1 = ` + pg.NoID + ` OR tenant_id = $1)`

// UsedCategories returns the categories of a tenant's pushes, or of all tenants for [uuid.Nil], from a bounded part of the numbers: of many
// categories, some may be missing.
func (s *Store) UsedCategories(ctx context.Context, tenant uuid.UUID) (names []string, err error) {
	err = s.db.Read(ctx, tenant, func(ctx context.Context, c pg.Reader) error {
		rows, _ := c.Query(ctx, categoriesSQL, tenant, mostLooked)
		names, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	return names, err
}
