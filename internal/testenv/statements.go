package testenv

import (
	"context"
	"sync"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Connect connects to a Postgres, until the test ends.
func Connect(t T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	Check(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) }) // it may be cut by then
	return conn
}

// Exec runs a statement in the database of a URL.
func Exec(t T, url, statement string, args ...any) {
	t.Helper()
	Check(t, connected(t.Context(), url, func(c *pgx.Conn) error {
		_, err := c.Exec(t.Context(), statement, args...)
		return err
	}))
}

// Query returns the result of a query in the database of a URL: one row and one column.
func Query[V any](t T, url, query string, args ...any) V {
	t.Helper()
	var value V
	Check(t, connected(t.Context(), url, func(c *pgx.Conn) (err error) {
		rows, _ := c.Query(t.Context(), query, args...) // the rows return its error
		value, err = pgx.CollectExactlyOneRow(rows, pgx.RowTo[V])
		return err
	}))
	return value
}

// ownSQL creates a schema where each table shows only the rows of the tenant own.tenant.
const ownSQL = `DO $$ DECLARE name name; BEGIN
	CREATE SCHEMA own;
	CREATE VIEW own.tenants AS SELECT * FROM tenants WHERE id = current_setting('own.tenant')::uuid;
	FOR name IN SELECT relname FROM pg_class c JOIN pg_attribute a ON attrelid = c.oid AND attname = 'tenant_id'
			WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition LOOP
		EXECUTE format('CREATE VIEW own.%I AS SELECT * FROM public.%I WHERE tenant_id = current_setting(''own.tenant'')::uuid', name, name);
	END LOOP;
END $$`

// Own runs statements in the shared database that only see and change the rows of one tenant.
type Own struct{ Tenant uuid.UUID }

// Exec runs a statement.
func (o Own) Exec(t T, statement string, args ...any) {
	t.Helper()
	o.run(t, func(c *pgx.Conn) error {
		_, err := c.Exec(t.Context(), statement, args...)
		return err
	})
}

// QueryOwn returns the result of a query: one row and one column.
func QueryOwn[V any](t T, o Own, query string, args ...any) (value V) {
	t.Helper()
	o.run(t, func(c *pgx.Conn) (err error) {
		rows, _ := c.Query(t.Context(), query, args...) // the rows return its error
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

// connected uses a connection to the database of a URL. It keeps connections to databases of this process, because a
// new one takes Postgres longer than most statements.
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

// pools holds connection pools by database URL.
type pools struct {
	mu   sync.Mutex
	open map[string]*pgxpool.Pool
}

// kept are the pools of the databases that this process has created.
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
