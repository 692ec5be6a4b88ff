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

// createdNames finds what a migration makes.
var createdNames = regexp.MustCompile(`(?im)^\s*CREATE\s+(?:OR\s+REPLACE\s+|UNIQUE\s+|UNLOGGED\s+)*(?:TABLE|INDEX|VIEW|SEQUENCE|FUNCTION|TYPE|DOMAIN)\s+(?:CONCURRENTLY\s+)?(?:IF\s+NOT\s+EXISTS\s+)?(\w+)`)

// errNoSchema: there is no place for the tables.
var errNoSchema = errors.New("the schema that search_path names does not exist; make it with CREATE SCHEMA, or name another one")

// takenQuery lists what has one of our names in the schema in which the tables are to be made.
const takenQuery = `
WITH here AS (SELECT oid FROM pg_namespace WHERE nspname = current_schema())
SELECT relname::text FROM pg_class WHERE relnamespace = (SELECT oid FROM here) AND relname = ANY ($1)
UNION SELECT proname || '()' FROM pg_proc WHERE pronamespace = (SELECT oid FROM here) AND proname = ANY ($1)
UNION SELECT typname::text FROM pg_type WHERE typnamespace = (SELECT oid FROM here) AND typname = ANY ($1)
ORDER BY 1`

// checkNames refuses a schema in which something of another application has a name that is ours, before anything is made.
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
	return fmt.Errorf("the schema %s has what sendquota did not make, by names that it needs: %s; give sendquota a database or a schema of its own, with search_path in DATABASE_URL; nothing was changed",
		*schema, strings.Join(taken, ", "))
}
