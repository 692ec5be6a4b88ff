package store

import (
	"context"
	"fmt"
	"strings"

	"github.com/sendquota/sendquota/internal/store/pg"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// exportedColumnsSQL lists the exported columns of a table, $1. It leaves out secrets, hashes, tokens, and columns
// that only programs can read.
const exportedColumnsSQL = `
	SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) FROM pg_attribute
	WHERE attrelid = to_regclass($1) AND attnum > 0 AND NOT attisdropped AND atttypid <> 'bytea'::regtype
		AND attname NOT IN ('secret', 'old_secret', 'old_secret_until', 'password_hash', 'token', 'worker', 'lease_until', 'recipient_key', 'address_key', 'address_keys', 'shard')`

// ExportTenant calls line for each row of a tenant, with the name of the table and the row as a JSON object without
// secrets. It reads each table, or partition, in one snapshot.
func (s *Store) ExportTenant(ctx context.Context, tenant uuid.UUID, line func(table string, object []byte) error) error {
	err := s.exportTable(ctx, "tenants", "tenants", `id = $1`, tenant, line)
	for _, of := range tenantRows {
		if err != nil {
			return err
		}
		where := of.where
		switch of.table {
		case "recounts", "ahead": // derived from pushes
			continue
		case "{pushes}":
			where = `tenant_id = $1`
		}
		var tables []string
		if tables, err = s.tables(ctx, of.table); err != nil {
			return err
		}
		for _, table := range tables {
			if err = s.exportTable(ctx, strings.Trim(of.table, "{}"), table, where, tenant, line); err != nil {
				return err
			}
		}
	}
	return err
}

// exportTable exports a table or a partition under a name.
func (s *Store) exportTable(ctx context.Context, name, table, where string, tenant uuid.UUID, line func(table string, object []byte) error) error {
	columns, err := pg.Collect(ctx, s.db, pgx.RowTo[*string], exportedColumnsSQL, table)
	if err != nil || columns[0] == nil { // the partition was dropped
		return err
	}
	return pg.OnConn(ctx, s.db.Pool, func(c *pgxpool.Conn) error {
		rows, _ := c.Query(ctx, fmt.Sprintf(`SELECT row_to_json(r)::text FROM (SELECT %s FROM %s d WHERE %s) r`, *columns[0], table, where), tenant)
		var object []byte
		_, err := pgx.ForEachRow(rows, []any{&object}, func() error { return line(name, object) })
		if pg.Repartitioned(err) {
			return nil
		}
		return err
	})
}
