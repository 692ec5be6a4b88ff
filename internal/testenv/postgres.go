package testenv

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/devstack"
	"github.com/sendquota/sendquota/internal/store"
)

// cleanupTime bounds the work after a test, whose context is over.
const cleanupTime = time.Minute

// postgres is a server with a migrated database to copy from.
type postgres struct {
	server   *devstack.Server
	template string
}

// Postgres returns the URL of a new, migrated database for this test alone.
// It is dropped when the test ends, and open connections with it.
func Postgres(t T) string {
	t.Helper()
	return servers.Postgres(t)
}

// Postgres returns the URL of a new, migrated database for this test alone. It is
// dropped when the test ends.
func (s *Servers) Postgres(t T) string {
	t.Helper()
	p, err := s.postgres()
	Check(t, err)
	name := newName()
	Check(t, devstack.Exec(t.Context(), p.server.URL, "CREATE DATABASE "+name+" TEMPLATE "+p.template))
	Finally(t, func() error { return p.drop(name) })
	u, err := p.url(name)
	Check(t, err)
	return u
}

// Connect connects to a Postgres, until the test ends.
func Connect(t T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	Check(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) }) // it may be cut by then
	return conn
}

// PostgresServer returns the server itself.
func (s *Servers) PostgresServer(t T) *devstack.Server {
	t.Helper()
	p, err := s.postgres()
	Check(t, err)
	return p.server
}

// Exec runs a statement in the database of a URL.
func Exec(t T, url, statement string, args ...any) {
	t.Helper()
	Check(t, devstack.Exec(t.Context(), url, statement, args...))
}

// Query returns the value that a query finds in the database of a URL: of one row and one column.
func Query[V any](t T, url, query string, args ...any) V {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	Check(t, err)
	defer conn.Close(t.Context())
	rows, _ := conn.Query(t.Context(), query, args...) // its error is also that of the rows
	value, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[V])
	Check(t, err)
	return value
}

// newPostgres finds or starts a server and makes the template in it.
func newPostgres(c devstack.Config) (*postgres, error) {
	ctx, cancel := context.WithTimeout(context.Background(), startTime)
	defer cancel()
	server, err := devstack.StartPostgres(ctx, c)
	if err != nil {
		return nil, err
	}
	p := &postgres{server: server, template: newName()}
	if err := p.makeTemplate(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("make the template database: %w", err), p.close())
	}
	return p, nil
}

func (p *postgres) makeTemplate(ctx context.Context) error {
	if err := devstack.Exec(ctx, p.server.URL, "CREATE DATABASE "+p.template); err != nil {
		return err
	}
	u, err := p.url(p.template)
	if err != nil {
		return err
	}
	if err := migrate(ctx, u); err != nil {
		return err
	}
	return devstack.Exec(ctx, u, fewPartsSQL)
}

// fewPartsSQL leaves the partitions that most tests need, since each makes a new database slower, and adds some for what
// tests forge that was to be sent, or was sent, before now. Programs make others when they need them.
const fewPartsSQL = `
	DO $$ DECLARE far text; BEGIN
		SELECT string_agg(inhrelid::regclass::text, ', ') INTO far FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid
		WHERE inhparent IN (to_regclass('pushes'), to_regclass('sends')) AND right(relname, 8) > to_char(now() + CASE WHEN relname ~ 'pushes' THEN '8 weeks' ELSE '2 days' END::interval, 'YYYYMMDD');
		EXECUTE 'DROP TABLE ' || far;
		PERFORM make_partitions('pushes', now() - interval '2 weeks', now()), make_partitions('sends', now() - interval '10 days', now());
	END $$`

func migrate(ctx context.Context, url string) error {
	_, err := store.Migrate(ctx, url, store.MigrateConfig{})
	return err
}

func (p *postgres) close() error {
	var err error
	if !p.server.Private() { // else it goes with the server
		err = p.drop(p.template)
	}
	return errors.Join(err, p.server.Close())
}

func (p *postgres) drop(name string) error {
	ctx, cancel := context.WithTimeout(context.Background(), cleanupTime)
	defer cancel()
	return devstack.Exec(ctx, p.server.URL, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)")
}

// newName is the name of a new database.
func newName() string { return "sendquota_test_" + strings.ToLower(rand.Text()[:12]) }

// url is the server's URL with another database. The environment may also
// hold the other form that Postgres knows, "host=… dbname=…", in which the
// last word wins.
func (p *postgres) url(database string) (string, error) {
	if !strings.Contains(p.server.URL, "://") {
		return p.server.URL + " dbname=" + database, nil
	}
	u, err := url.Parse(p.server.URL)
	if err != nil {
		return "", fmt.Errorf("DATABASE_URL: %w", err)
	}
	u.Path = "/" + database
	return u.String(), nil
}
