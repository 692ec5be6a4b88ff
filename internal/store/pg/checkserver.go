package pg

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/health"
)

const (
	// leastVersion is the first version of Postgres with all features that the statements use.
	leastVersion = 15
	// leastLocks is the minimum of max_locks_per_transaction: a group of bookings locks each of its recipients.
	leastLocks = 256
)

// CheckServer checks the version, the lock table and the connection limits of Postgres. It lists everything that is lacking
// in a [*health.Deficits]. The program works in spite of it.
func (s *DB) CheckServer(ctx context.Context) error {
	return OnConn(ctx, s.Pool, func(c *pgxpool.Conn) error { return checkServer(ctx, c.Conn(), s.Cfg, s.route.pooled.Load()) })
}

// Check connects to a database as the services do, and returns all problems that [DB.Ready], [DB.CheckSeals] and
// [DB.CheckServer] would report. It changes nothing.
func Check(ctx context.Context, databaseURL string, cfg Config) error {
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
	return errors.Join(checkEncoding(c), unready, checkServer(ctx, c, cfg.withDefaults(), pooled))
}

// facts holds the settings of Postgres that sendquota depends on. Zero: the server does not report the setting.
type facts struct {
	Version     string
	Number      int // 150004 is 15.4
	Locks       int
	Connections int // maximum that the role can open
}

// factsQuery reads [facts]. Only superusers can open all connections.
const factsQuery = `
SELECT current_setting('server_version'), current_setting('server_version_num')::int, coalesce(current_setting('max_locks_per_transaction', true)::int, 0),
	CASE WHEN r.rolsuper THEN current_setting('max_connections')::int ELSE least(nullif(r.rolconnlimit, -1), nullif(d.datconnlimit, -1),
		current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int - coalesce(current_setting('reserved_connections', true)::int, 0)) END
FROM pg_roles r, pg_database d WHERE r.rolname = session_user AND d.datname = current_database()`

// checkServer reads and checks the facts. A pooler limits its own connections, so they are not checked behind one.
func checkServer(ctx context.Context, c *pgx.Conn, cfg Config, pooled bool) error {
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

// check returns what is lacking. At least an API and a worker run, with up to each connections per process.
func (f facts) check(each int) error {
	var lacks health.Deficits
	if f.Number/10_000 < leastVersion {
		lacks.Add("old_version", "Postgres has the version %s, but sendquota needs %d or later; upgrade it", f.Version, leastVersion)
	}
	if f.Locks > 0 && f.Locks < leastLocks {
		lacks.Add("few_locks", "Postgres has max_locks_per_transaction = %d, but groups of bookings need %d; raise it, and restart Postgres", f.Locks, leastLocks)
	}
	if f.Connections > 0 && f.Connections < 2*each {
		lacks.Add("few_connections", "Postgres allows %d connections, but an API and a worker open up to %d each; raise max_connections or the limit of the role or database, "+
			"or lower database.max_connections", f.Connections, each)
	}
	return lacks.Err()
}
