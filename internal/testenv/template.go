package testenv

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"time"

	"github.com/sendquota/sendquota/internal/store/pg"

	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/devstack"
	"github.com/sendquota/sendquota/migrations"
)

// newSeed returns the initial content of a Postgres for tests: a migrated database to copy. Its name contains the hash
// of the migrations and the day, because its partitions lie around now.
func newSeed() (devstack.Seed, error) {
	sum := sha256.New()
	fmt.Fprintln(sum, partsSQL)
	names, err := fs.Glob(migrations.FS, "*.sql")
	for _, name := range names {
		var text []byte
		if text, err = fs.ReadFile(migrations.FS, name); err != nil {
			break
		}
		fmt.Fprintf(sum, "%s %d\n%s", name, len(text), text)
	}
	name := fmt.Sprintf("sendquota_template_%s_%x", time.Now().UTC().Format("20060102"), sum.Sum(nil)[:6])
	return devstack.Seed{Name: name, Make: func(ctx context.Context, url string) error { return makeTemplate(ctx, url, name) }}, err
}

// makeTemplate makes the template in a server, unless another process has done so.
// It gets its name when it is complete.
func makeTemplate(ctx context.Context, server, name string) error {
	admin, err := withDatabase(server, "postgres")
	if err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, admin)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	var made bool
	if _, err := conn.Exec(ctx, `SELECT pg_advisory_lock(hashtext($1))`, name); err != nil {
		return err
	}
	if err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)`, name).Scan(&made); err != nil || made {
		return err
	}
	side := name + "_new"
	u, err := withDatabase(server, side)
	if err != nil {
		return err
	}
	for _, step := range []func() error{
		func() error { return devstack.Exec(ctx, admin, "DROP DATABASE IF EXISTS "+side+" WITH (FORCE)") },
		func() error { return devstack.Exec(ctx, admin, "CREATE DATABASE "+side) },
		func() error { return migrate(ctx, u) },
		func() error { return devstack.Exec(ctx, u, partsSQL) },
		func() error { return devstack.Exec(ctx, admin, "ALTER DATABASE "+side+" RENAME TO "+name) },
	} {
		if err := step(); err != nil {
			return fmt.Errorf("make the template database: %w", err)
		}
	}
	return nil
}

// partsSQL creates partitions for pushes and sends in the past and future that tests forge. Programs create others when
// they need them.
const partsSQL = `SELECT make_partitions('pushes', now() - interval '1 weeks', now() + interval '1 weeks'), make_partitions('sends', now() - interval '2 days', now())`

func migrate(ctx context.Context, url string) error {
	_, err := pg.Migrate(ctx, url, pg.MigrateConfig{})
	return err
}
