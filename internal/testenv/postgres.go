package testenv

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/devstack"
	"github.com/sendquota/sendquota/internal/store"
)

// cleanupTime bounds the work after a test, whose context is over.
const cleanupTime = time.Minute

// postgres is a server with a migrated database to copy from.
type postgres struct {
	server   *devstack.Server
	admin    string // URL of a database that is not for tests
	template string
	shared   func() (sharedDatabase, error) // for all tests of this process
	mu       sync.Mutex
	dropped  []string // what close drops, if the server stays
}

// sharedDatabase is one with a store, whose connections tests share as well.
type sharedDatabase struct {
	url   string
	store *store.Store
}

// Patience is how long the shared store lets a transaction, and a statement that reads, take: longer than on the busiest machine.
const Patience = time.Minute

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

// SharedStore returns the store of the shared database, which belongs to all tests of this process: what they measure of its
// connections, and what they close, they open themselves.
func SharedStore(t T) *store.Store {
	t.Helper()
	p, err := servers.postgres()
	Check(t, err)
	d, err := p.shared()
	Check(t, err)
	return d.store
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
	Finally(t, func() error { kept.close(u); return p.drop(name) })
	return u
}

// SharedPostgres returns the URL of a migrated database that stays until Close.
func (s *Servers) SharedPostgres(t T) string {
	t.Helper()
	p, err := s.postgres()
	Check(t, err)
	d, err := p.shared()
	Check(t, err)
	return d.url
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
	Check(t, connected(t.Context(), url, func(c *pgx.Conn) error {
		_, err := c.Exec(t.Context(), statement, args...)
		return err
	}))
}

// Query returns the value that a query finds in the database of a URL: of one row and one column.
func Query[V any](t T, url, query string, args ...any) V {
	t.Helper()
	var value V
	Check(t, connected(t.Context(), url, func(c *pgx.Conn) (err error) {
		rows, _ := c.Query(t.Context(), query, args...) // its error is also that of the rows
		value, err = pgx.CollectExactlyOneRow(rows, pgx.RowTo[V])
		return err
	}))
	return value
}

// ownSQL makes a schema in which each table has only what is of the tenant own.tenant.
const ownSQL = `DO $$ DECLARE name name; BEGIN
	CREATE SCHEMA own;
	CREATE VIEW own.tenants AS SELECT * FROM tenants WHERE id = current_setting('own.tenant')::uuid;
	FOR name IN SELECT relname FROM pg_class c JOIN pg_attribute a ON attrelid = c.oid AND attname = 'tenant_id'
			WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition LOOP
		EXECUTE format('CREATE VIEW own.%I AS SELECT * FROM public.%I WHERE tenant_id = current_setting(''own.tenant'')::uuid', name, name);
	END LOOP;
END $$`

// Own runs statements in the shared database that see, and change, the rows of one tenant only.
type Own struct{ Tenant uuid.UUID }

// Exec runs a statement.
func (o Own) Exec(t T, statement string, args ...any) {
	t.Helper()
	o.run(t, func(c *pgx.Conn) error {
		_, err := c.Exec(t.Context(), statement, args...)
		return err
	})
}

// QueryOwn returns the value that a query finds: of one row and one column.
func QueryOwn[V any](t T, o Own, query string, args ...any) (value V) {
	t.Helper()
	o.run(t, func(c *pgx.Conn) (err error) {
		rows, _ := c.Query(t.Context(), query, args...) // its error is also that of the rows
		value, err = pgx.CollectExactlyOneRow(rows, pgx.RowTo[V])
		return err
	})
	return value
}

func (o Own) run(t T, use func(*pgx.Conn) error) {
	t.Helper()
	Check(t, connected(t.Context(), SharedPostgres(t), func(c *pgx.Conn) error {
		return pgx.BeginFunc(t.Context(), c, func(tx pgx.Tx) error {
			const only = `SELECT set_config('search_path', 'own, public', true), set_config('own.tenant', $1, true)`
			if _, err := tx.Exec(t.Context(), only, o.Tenant.String()); err != nil {
				return err
			}
			return use(c)
		})
	}))
}

// connected uses a connection to the database of a URL. Those to databases that were made here are kept, as a start of one
// takes Postgres longer than most statements.
func connected(ctx context.Context, url string, use func(*pgx.Conn) error) error {
	if pool := kept.of(url); pool != nil {
		return pool.AcquireFunc(ctx, func(c *pgxpool.Conn) error { return use(c.Conn()) })
	}
	c, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer c.Close(ctx)
	return use(c)
}

// pools are connections to databases, by their URLs.
type pools struct {
	mu   sync.Mutex
	open map[string]*pgxpool.Pool
}

// kept are those to the databases that were made here.
var kept = pools{open: map[string]*pgxpool.Pool{}}

func (p *pools) of(url string) *pgxpool.Pool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.open[url]
}

func (p *pools) add(ctx context.Context, url string) error {
	c, err := pgxpool.ParseConfig(url)
	if err != nil {
		return err
	}
	c.MaxConns = 20
	c.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeDescribeExec // tests change tables
	pool, err := pgxpool.NewWithConfig(ctx, c)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open[url] = pool
	return nil
}

func (p *pools) close(url string) {
	p.mu.Lock()
	pool := p.open[url]
	delete(p.open, url)
	p.mu.Unlock()
	if pool != nil {
		pool.Close()
	}
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
	if p.admin, err = withDatabase(server.URL, "postgres"); err == nil {
		err = kept.add(context.Background(), p.admin)
	}
	if err != nil {
		return nil, errors.Join(err, server.Close())
	}
	p.shared = sync.OnceValues(func() (sharedDatabase, error) {
		d, err := p.open(store.Config{})
		if err == nil {
			err = devstack.Exec(context.Background(), d.url, ownSQL)
		}
		return d, err
	})
	if server.Private() {
		return p, nil // the Seed made it
	}
	if err := c.Seed.Make(ctx, server.URL); err != nil {
		return nil, errors.Join(err, server.Close())
	}
	return p, nil
}

// open makes a database that stays until close, and its store, which is as patient as a busy machine needs.
func (p *postgres) open(c store.Config) (d sharedDatabase, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), startTime)
	defer cancel()
	var name string
	if name, d.url, err = p.create(ctx); err != nil {
		return d, err
	}
	p.mu.Lock()
	p.dropped = append(p.dropped, name)
	p.mu.Unlock()
	c.Timeout, c.ReadTimeout = cmp.Or(c.Timeout, Patience), cmp.Or(c.ReadTimeout, Patience)
	d.store, err = store.Open(context.Background(), d.url, c)
	return d, err
}

// create copies the template.
func (p *postgres) create(ctx context.Context) (name, url string, err error) {
	name = newName()
	if err = p.administer(ctx, "CREATE DATABASE "+name+" TEMPLATE "+p.template); err != nil {
		return name, "", err
	}
	if url, err = withDatabase(p.server.URL, name); err == nil {
		err = kept.add(context.Background(), url)
	}
	return name, url, err
}

// administer runs a statement that concerns whole databases.
func (p *postgres) administer(ctx context.Context, statement string) error {
	return connected(ctx, p.admin, func(c *pgx.Conn) error {
		_, err := c.Exec(ctx, statement)
		return err
	})
}

func (p *postgres) close() error {
	var err error
	if !p.server.Private() { // else they go with the server
		for _, name := range p.dropped {
			err = errors.Join(err, p.drop(name))
		}
	}
	kept.close(p.admin)
	return errors.Join(err, p.server.Close())
}

func (p *postgres) drop(name string) error {
	ctx, cancel := context.WithTimeout(context.Background(), cleanupTime)
	defer cancel()
	return p.administer(ctx, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)")
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
