package pg

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"github.com/sendquota/sendquota/internal/duration"
	"github.com/sendquota/sendquota/migrations"
)

// ErrPooled is the error of a migration through a pooler, which cannot work, because a migration holds a session lock.
var ErrPooled = errors.New("DATABASE_URL leads through a pooler, such as PgBouncer, and migrations need a connection to Postgres itself; " +
	"run: DATABASE_URL=postgres://…, the one of Postgres, sendquota migrate")

// errOldSchema: an early version made the tables, and no migration of this program can convert them.
var errOldSchema = errors.New("an early version of sendquota made this database, and this version cannot convert it; " +
	"dump what you need with pg_dump, and run sendquota migrate on an empty database")

// oldSchemaQuery reports whether an early version made the tables: that version wrote events by triggers, or recorded
// its migrations in goose_db_version.
const oldSchemaQuery = `SELECT to_regprocedure('tell_booked()') IS NOT NULL
	OR to_regclass('goose_db_version') IS NOT NULL AND to_regclass('pushes') IS NOT NULL AND to_regclass('` + versionTable + `') IS NULL`

// Migrate applies the missing migrations one by one, the lowest first, and returns the names of their files. If a
// migration fails, Migrate also returns the names of those applied before. A Postgres session lock serialises
// concurrent callers: one works, and the others wait and find nothing left to do. Through a pooler it does nothing and
// returns [ErrPooled].
func Migrate(ctx context.Context, databaseURL string, cfg MigrateConfig) (applied []string, err error) {
	cfg.Wait = cmp.Or(cfg.Wait, time.Minute)
	if cfg.Tell == nil {
		cfg.Tell = func(string) {}
	}
	if cfg.Files == nil {
		cfg.Files = migrations.FS
	}
	pc, err := ParseURL(databaseURL)
	if err != nil {
		return nil, err
	}
	pc.ConnConfig.RuntimeParams["application_name"] = "sendquota migrate"
	switch pooled, err := isPooled(ctx, pc.ConnConfig); {
	case err != nil:
		return nil, fmt.Errorf("migrate: %w", err)
	case pooled:
		return nil, ErrPooled
	}
	pc.AfterConnect = func(_ context.Context, c *pgx.Conn) error { return checkEncoding(c) }
	pool, err := pgxpool.NewWithConfig(ctx, pc)
	if err != nil {
		return nil, fmt.Errorf("migrate: %w", err)
	}
	defer pool.Close()
	var old bool
	if err := pool.QueryRow(ctx, oldSchemaQuery).Scan(&old); err != nil || old {
		return nil, fmt.Errorf("migrate: %w", cmp.Or(err, errOldSchema))
	}
	if err := checkNames(ctx, pool, cfg.Files); err != nil {
		return nil, fmt.Errorf("migrate: %w", err)
	}
	db := stdlib.OpenDBFromPool(pool)
	defer db.Close()

	m := &migrator{cfg: cfg, pool: pool}
	applied, err = m.all(ctx, db)
	if errors.Is(err, errContract) {
		cfg.Tell(m.file + " is skipped: it drops what programs of the previous release use. When none of them runs any more, run: sendquota migrate --contract")
		err = nil
	}
	if err != nil {
		return applied, fmt.Errorf("migrate: %w", err)
	}
	return applied, nil
}

// all applies all migrations, or those before the first one that contracts the schema and was not allowed. Only
// contracting migrations follow that one.
func (m *migrator) all(ctx context.Context, db *sql.DB) (applied []string, err error) {
	provider, err := goose.NewProvider(goose.DialectPostgres, db, m.cfg.Files, goose.WithTableName(versionTable), goose.WithSessionLocker(m), goose.WithAllowOutofOrder(true))
	if err != nil {
		return nil, err
	}
	m.sources = provider.ListSources()
	for {
		result, err := m.migrate(ctx, provider)
		if err != nil {
			if errors.Is(err, goose.ErrNoNextVersion) {
				err = nil
			}
			return applied, err
		}
		applied = append(applied, result.Source.Path)
	}
}

// migrate applies the next migration. It retries a migration that cannot get its locks until [MigrateConfig.Wait] has
// passed.
func (m *migrator) migrate(ctx context.Context, provider *goose.Provider) (*goose.MigrationResult, error) {
	m.began, m.blockers, m.reported = time.Time{}, "", ""
	for {
		m.stopWatching = func() {}
		result, err := provider.UpByOne(ctx)
		m.stopWatching()
		switch {
		case !HasCode(err, "55P03", "40P01"): // lock_not_available, deadlock_detected: another session held a lock; the migration changed nothing
			return result, err
		case time.Since(m.began) >= m.cfg.Wait:
			return nil, fmt.Errorf("%s could not get a lock that it needs: %s held it for %s. Wait until that session ends, or end it with SELECT pg_terminate_backend(…); "+
				"then migrate again, with a longer --wait; no change was left unfinished: %w", m.file, cmp.Or(m.blockers, "another session"), duration.Words(m.cfg.Wait), err)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(lockPause):
		}
	}
}
