package pg

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// createdNames matches the names of the objects that a migration creates.
var createdNames = regexp.MustCompile(`(?im)^\s*CREATE\s+(?:OR\s+REPLACE\s+|UNIQUE\s+|UNLOGGED\s+)*(?:TABLE|INDEX|VIEW|SEQUENCE|FUNCTION|TYPE|DOMAIN)\s+(?:CONCURRENTLY\s+)?(?:IF\s+NOT\s+EXISTS\s+)?(\w+)`)

// errNoSchema: the schema for the tables does not exist.
var errNoSchema = errors.New("the schema in search_path does not exist; create it with CREATE SCHEMA, or name another one")

// takenQuery lists objects with one of our names in the schema for the tables.
const takenQuery = `
WITH here AS (SELECT oid FROM pg_namespace WHERE nspname = current_schema())
SELECT relname::text FROM pg_class WHERE relnamespace = (SELECT oid FROM here) AND relname = ANY ($1)
UNION SELECT proname || '()' FROM pg_proc WHERE pronamespace = (SELECT oid FROM here) AND proname = ANY ($1)
UNION SELECT typname::text FROM pg_type WHERE typnamespace = (SELECT oid FROM here) AND typname = ANY ($1)
ORDER BY 1`

// checkNames rejects a schema that already holds objects of another application under names that sendquota needs. It
// runs before anything is created.
func checkNames(ctx context.Context, pool *pgxpool.Pool, files fs.FS) error {
	var schema *string
	var begun bool
	if err := pool.QueryRow(ctx, `SELECT current_schema()::text, to_regclass('`+versionTable+`') IS NOT NULL`).Scan(&schema, &begun); err != nil {
		return err
	}
	if schema == nil {
		return errNoSchema
	}
	if begun {
		if err := pool.QueryRow(ctx, `SELECT EXISTS (SELECT FROM `+versionTable+` WHERE version_id > 0)`).Scan(&begun); err != nil || begun {
			return err
		}
	}
	names, err := fs.Glob(files, "*.sql")
	if err != nil {
		return err
	}
	var ours []string
	for _, name := range names {
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		up, _, _ := strings.Cut(string(text), "-- +goose Down")
		for _, match := range createdNames.FindAllStringSubmatch(up, -1) {
			ours = append(ours, match[1])
		}
	}
	rows, _ := pool.Query(ctx, takenQuery, ours)
	taken, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(taken) == 0 {
		return err
	}
	return fmt.Errorf("the schema %s already has objects with names that sendquota needs: %s; give sendquota a database or a schema of its own, with search_path in DATABASE_URL; nothing was changed",
		*schema, strings.Join(taken, ", "))
}
