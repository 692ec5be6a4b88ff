package pg

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/health"
)

// A group of bookings holds one lock for each recipient. Statements need features of leastVersion.
const (
	leastVersion = 15
	leastLocks   = 256
)

// Suits reports whether Postgres is set up for sendquota: its version, its locks, and its connections. The error lists
// everything that it lacks, [*health.Unsuited]; the program works in spite of it.
func (s *DB) Suits(ctx context.Context) error {
	return OnConn(ctx, s.Pool, func(c *pgxpool.Conn) error { return suits(ctx, c.Conn(), s.Cfg, s.route.pooled.Load()) })
}

// CheckServer connects to a database as the services would, and returns everything that is wrong with it, as [DB.Ready],
// [DB.CheckSeals] and [DB.Suits] do. It changes nothing.
func CheckServer(ctx context.Context, databaseURL string, cfg Config) error {
	pc, err := ParseURL(databaseURL)
	if err != nil {
		return err
	}
	pooled, err := isPooled(ctx, pc.ConnConfig)
	if err != nil {
		return fmt.Errorf("connect to Postgres: %w", err)
	}
	c, err := ConnectOnce(ctx, pc.ConnConfig)
	if err != nil {
		return fmt.Errorf("connect to Postgres: %w", err)
	}
	defer c.Close(ctx)
	unready := ready(ctx, c)
	if unready == nil {
		unready = checkSeals(ctx, c, cfg.Sealer)
	}
	return errors.Join(checkEncoding(c), unready, suits(ctx, c, cfg.withDefaults(), pooled))
}

// facts are the settings of a Postgres on which sendquota depends. Zero: the server does not report it.
type facts struct {
	Version     string
	Number      int // 150004 is 15.4
	Locks       int
	Connections int // that the role can open
}

// factsQuery reads the [facts]. Superusers may open all connections.
const factsQuery = `
SELECT current_setting('server_version'), current_setting('server_version_num')::int, coalesce(current_setting('max_locks_per_transaction', true)::int, 0),
	CASE WHEN r.rolsuper THEN current_setting('max_connections')::int ELSE least(nullif(r.rolconnlimit, -1), nullif(d.datconnlimit, -1),
		current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int - coalesce(current_setting('reserved_connections', true)::int, 0)) END
FROM pg_roles r, pg_database d WHERE r.rolname = session_user AND d.datname = current_database()`

// suits reads the facts. Behind a pooler, the connections are the pooler's to bound.
func suits(ctx context.Context, c *pgx.Conn, cfg Config, pooled bool) error {
	rows, _ := c.Query(ctx, factsQuery)
	is, err := pgx.CollectOneRow(rows, pgx.RowToStructByPos[facts])
	if err != nil {
		return Classify(err)
	}
	if pooled {
		is.Connections = 0
	}
	return is.check(cfg.MaxConns + cfg.ReadConns)
}

// check returns what is lacking. An API and a worker at least have so many connections each.
func (f facts) check(each int) error {
	var lacks health.Unsuited
	if f.Number/10_000 < leastVersion {
		lacks.Lacks("old_version", "Postgres has the version %s, and sendquota needs %d or later; upgrade it", f.Version, leastVersion)
	}
	if f.Locks > 0 && f.Locks < leastLocks {
		lacks.Lacks("few_locks", "Postgres has max_locks_per_transaction = %d, and groups of bookings need %d; set it, and restart Postgres", f.Locks, leastLocks)
	}
	if f.Connections > 0 && f.Connections < 2*each {
		lacks.Lacks("few_connections", "Postgres allows %d connections, and an API and a worker open up to %d each; raise max_connections or the limit of the role or database, "+
			"or lower database.max_connections", f.Connections, each)
	}
	return lacks.Err()
}
