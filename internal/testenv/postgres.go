package testenv

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/devstack"
)

// cleanupTime bounds the work after a test, whose context is over.
const cleanupTime = time.Minute

// postgres is a server with a migrated database to copy from.
type postgres struct {
	server   *devstack.Server
	template string
	shared   func() (url string, err error) // a database for all tests of this process
	dropped  []string                       // what close drops, if the server stays
}

// Postgres returns the URL of a new, migrated database for this test alone.
// It is dropped when the test ends, and open connections with it. A test that
// needs no more than a tenant of its own takes SharedPostgres.
func Postgres(t T) string {
	t.Helper()
	return servers.Postgres(t)
}

// SharedPostgres returns the URL of the migrated database that the tests of this
// process share. Each of them makes a tenant in it, and asserts nothing about others.
func SharedPostgres(t T) string {
	t.Helper()
	return servers.SharedPostgres(t)
}

// Postgres returns the URL of a new, migrated database for this test alone. It is
// dropped when the test ends.
func (s *Servers) Postgres(t T) string {
	t.Helper()
	p, err := s.postgres()
	Check(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), startTime)
	defer cancel()
	name, u, err := p.create(ctx)
	Check(t, err)
	Finally(t, func() error { return p.drop(name) })
	return u
}

// SharedPostgres returns the URL of a migrated database that stays until Close.
func (s *Servers) SharedPostgres(t T) string {
	t.Helper()
	p, err := s.postgres()
	Check(t, err)
	u, err := p.shared()
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

// newPostgres finds or starts a server with a template in it.
func newPostgres(c devstack.Config) (*postgres, error) {
	ctx, cancel := context.WithTimeout(context.Background(), startTime)
	defer cancel()
	var err error
	if c.Seed, err = newSeed(); err != nil {
		return nil, err
	}
	server, err := devstack.StartPostgres(ctx, c)
	if err != nil {
		return nil, err
	}
	p := &postgres{server: server, template: c.Seed.Name}
	p.shared = sync.OnceValues(func() (string, error) {
		ctx, cancel := context.WithTimeout(context.Background(), startTime)
		defer cancel()
		name, u, err := p.create(ctx)
		p.dropped = append(p.dropped, name)
		return u, err
	})
	if server.Private() {
		return p, nil // the Seed made it
	}
	if err := c.Seed.Make(ctx, server.URL); err != nil {
		return nil, errors.Join(err, server.Close())
	}
	return p, nil
}

// create copies the template.
func (p *postgres) create(ctx context.Context) (name, url string, err error) {
	name = newName()
	admin, err := withDatabase(p.server.URL, "postgres")
	if err == nil {
		err = devstack.Exec(ctx, admin, "CREATE DATABASE "+name+" TEMPLATE "+p.template)
	}
	if err != nil {
		return name, "", err
	}
	url, err = withDatabase(p.server.URL, name)
	return name, url, err
}

func (p *postgres) close() error {
	var err error
	if !p.server.Private() { // else they go with the server
		for _, name := range p.dropped {
			err = errors.Join(err, p.drop(name))
		}
	}
	return errors.Join(err, p.server.Close())
}

func (p *postgres) drop(name string) error {
	ctx, cancel := context.WithTimeout(context.Background(), cleanupTime)
	defer cancel()
	admin, err := withDatabase(p.server.URL, "postgres")
	if err != nil {
		return err
	}
	return devstack.Exec(ctx, admin, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)")
}

// newName is the name of a new database.
func newName() string { return "sendquota_test_" + strings.ToLower(rand.Text()[:12]) }

// withDatabase is the URL of another database of the same server. A URL may also
// have the other form that Postgres knows, "host=… dbname=…", in which the last
// word wins.
func withDatabase(server, name string) (string, error) {
	if !strings.Contains(server, "://") {
		return server + " dbname=" + name, nil
	}
	u, err := url.Parse(server)
	if err != nil {
		return "", fmt.Errorf("URL of Postgres: %w", err)
	}
	u.Path = "/" + name
	return u.String(), nil
}
