package store

import (
	"context"
	"fmt"

	"github.com/sendquota/sendquota/internal/store/pg"
)

// OtherTenants returns the number of tenants in a database with other names than name. It uses one connection and
// changes neither the database nor the role. A database without tables has no tenants.
func OtherTenants(ctx context.Context, databaseURL, name string) (others int, err error) {
	pc, err := pg.ParseURL(databaseURL)
	if err != nil {
		return 0, err
	}
	c, err := pg.ConnectOnce(ctx, pc.ConnConfig)
	if err != nil {
		return 0, fmt.Errorf("connect to Postgres: %w", err)
	}
	defer c.Close(ctx)
	var made bool
	if err := c.QueryRow(ctx, `SELECT to_regclass('tenants') IS NOT NULL`).Scan(&made); err != nil || !made {
		return 0, err
	}
	err = c.QueryRow(ctx, `SELECT count(*) FROM tenants WHERE name <> $1`, name).Scan(&others)
	return others, err
}
