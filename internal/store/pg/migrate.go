package pg

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"github.com/sendquota/sendquota/internal/duration"
	"github.com/sendquota/sendquota/migrations"
)

// MigrateConfig says how to migrate. The zero value is useful.
type MigrateConfig struct {
	// Wait is for how long a migration is tried while other sessions hold locks that it needs; 0: a minute. Whatever it
	// waits for, requests go on.
	Wait time.Duration
	// Tell gets a line for everything that a migration waits for; nil: the lines are dropped.
	Tell func(line string)
	// Contract also applies the migrations that drop what only programs of the release before use. None of these may be at
	// work any more. A database that has no pushes, and that no program is connected to, is contracted without it.
	Contract bool
	// Files are the migrations; nil: those of sendquota.
	Files fs.FS
}

// ErrPooled: a migration cannot go through a pooler, because it holds a lock of its session.
var ErrPooled = errors.New("DATABASE_URL leads through a pooler, such as PgBouncer, and migrations need a connection to Postgres itself; " +
	"run: DATABASE_URL=postgres://…, the one of Postgres, sendquota migrate")

// errOldSchema: an early version made the tables, and no migration of this program can convert them.
var errOldSchema = errors.New("an early version of sendquota made this database, and this version cannot convert it; " +
	"dump what you need with pg_dump, and start afresh: run sendquota migrate on an empty database")

// versionTable tells which migrations were applied. It has a name of our own: goose's default may be another application's.
const versionTable = "sendquota_version"

// oldSchemaQuery reports whether an early version made the tables: it wrote events by triggers, or has applied its migrations
// to goose_db_version.
const oldSchemaQuery = `SELECT to_regprocedure('tell_booked()') IS NOT NULL
	OR to_regclass('goose_db_version') IS NOT NULL AND to_regclass('pushes') IS NOT NULL AND to_regclass('` + versionTable + `') IS NULL`

// errContract: the next migration is one that contracts the schema, and was not asked for.
var errContract = errors.New("it drops what programs of the release before use")

// lockTime bounds the wait for a lock in one try of a migration that runs in a transaction. All that wants to write to
// the table queues up behind it: so the wait is short, and then others have a turn.
const (
	lockTime  = time.Second
	lockPause = 2 * time.Second
)

// Migrate applies the migrations that the database still lacks, one by one, the lowest first, and returns the names of their files; of
// those that were applied also if a later one fails. A Postgres session lock lets several callers run it at once: one
// works, the others wait and find nothing left to do. Through a pooler it does nothing: [ErrPooled].
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

	turn := &migrationTurn{cfg: cfg, pool: pool}
	applied, err = turn.all(ctx, db)
	if errors.Is(err, errContract) {
		cfg.Tell(turn.file + " is left: it drops what programs of the release before use. When none of these is at work any more, run: sendquota migrate --contract")
		err = nil
	}
	if err != nil {
		return applied, fmt.Errorf("migrate: %w", err)
	}
	return applied, nil
}

// all applies all migrations, or those before the first that contracts the schema and may not be applied: no other kind stands behind it.
func (t *migrationTurn) all(ctx context.Context, db *sql.DB) (applied []string, err error) {
	provider, err := goose.NewProvider(goose.DialectPostgres, db, t.cfg.Files, goose.WithTableName(versionTable), goose.WithSessionLocker(t), goose.WithAllowOutofOrder(true))
	if err != nil {
		return nil, err
	}
	t.sources = provider.ListSources()
	for {
		result, err := t.migrate(ctx, provider)
		if err != nil {
			if errors.Is(err, goose.ErrNoNextVersion) {
				err = nil
			}
			return applied, err
		}
		applied = append(applied, result.Source.Path)
	}
}

// migrate applies the next migration. One that cannot have its locks is tried again until the time is over.
func (t *migrationTurn) migrate(ctx context.Context, provider *goose.Provider) (*goose.MigrationResult, error) {
	t.began, t.blockers, t.told = time.Time{}, "", ""
	for {
		t.stopWatching = func() {}
		result, err := provider.UpByOne(ctx)
		t.stopWatching()
		switch {
		case !HasCode(err, "55P03", "40P01"): // lock_not_available, deadlock_detected: other sessions had a lock, and nothing is left behind
			return result, err
		case time.Since(t.began) >= t.cfg.Wait:
			return nil, fmt.Errorf("%s cannot have a lock that it needs: for %s it was held by %s. Wait until that has ended, or end it with SELECT pg_terminate_backend(…), "+
				"and migrate again, with --wait for longer; nothing is half done: %w", t.file, duration.Words(t.cfg.Wait), cmp.Or(t.blockers, "another session"), err)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(lockPause):
		}
	}
}
