package pg

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/migrations"
)

// Migration is a migration of this program.
type Migration struct {
	File      string `json:"file"`
	Applied   bool   `json:"applied"`
	Contracts bool   `json:"contracts"` // a database in use needs sendquota migrate --contract to apply it
}

// Migrations lists the migrations of this program, the lowest first, and reports whether each was applied. It changes
// nothing.
func (s *DB) Migrations(ctx context.Context) ([]Migration, error) {
	applied := map[int64]bool{}
	there, err := Collect(ctx, s, pgx.RowTo[bool], `SELECT to_regclass('`+versionTable+`') IS NOT NULL`)
	if err == nil && there[0] {
		var versions []int64
		versions, err = Collect(ctx, s, pgx.RowTo[int64], `SELECT version_id FROM `+versionTable+` WHERE is_applied`)
		for _, v := range versions {
			applied[v] = true
		}
	}
	names, failed := fs.Glob(migrations.FS, "*.sql")
	if err := cmp.Or(err, failed); err != nil {
		return nil, err
	}
	all := make([]Migration, len(names))
	for i, name := range names {
		number, _, _ := strings.Cut(name, "_")
		version, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("migration %s: %w", name, err)
		}
		text, err := fs.ReadFile(migrations.FS, name)
		if err != nil {
			return nil, err
		}
		up, _, _ := strings.Cut(string(text), "-- +goose Down")
		all[i] = Migration{name, applied[version], migrations.Contracts(up)}
	}
	return all, nil
}
