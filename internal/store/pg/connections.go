package pg

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/semaphore"

	"github.com/sendquota/sendquota/internal/push"
)

// startup lists the parameters of every connection. Poolers accept these, too.
var startup = map[string]string{"timezone": "UTC", "application_name": "sendquota"}

// planner lists the planner settings of all transactions. An index serves every statement of the store. A plan that
// was cached while a table was small or not analyzed must not scan that table later: neither the table itself, nor with
// a bitmap all rows that match, to sort them, where the first few in the order of an index are needed. No statement is
// worth the start of parallel workers.
var planner = map[string]string{
	"enable_seqscan": "off", "enable_bitmapscan": "off", "enable_hashjoin": "off", "enable_mergejoin": "off",
	"plan_cache_mode": "force_generic_plan", "jit": "off", "max_parallel_workers_per_gather": "0",
}

// idleLimit names the Postgres setting that bounds how long an open transaction may be idle before Postgres ends it
// and releases its locks.
const idleLimit = "idle_in_transaction_session_timeout"

// mostWalks is the maximum number of concurrent statements that read all partitions. Each takes some hundred of the
// server's locks.
const mostWalks = 2

// pingAfter is the time without a use after which a connection is tried before its next use.
const pingAfter = 5 * time.Second

// Open creates the pools. It succeeds while Postgres is down, because connections are made when they are needed.
func Open(ctx context.Context, databaseURL string, cfg Config) (*DB, error) {
	cfg = cfg.withDefaults()
	s := &DB{Cfg: cfg, reading: reach{pool: "reads", log: cfg.Log}}
	s.db = s
	var err error
	if s.Pool, err = openPool(ctx, databaseURL, cfg, &s.route, &reach{pool: "changes", log: cfg.Log}, cfg.MaxConns, 2, ""); err != nil {
		return nil, err
	}
	onlyReads := "SET default_transaction_read_only = on; SET statement_timeout = " + Milliseconds(cfg.ReadTimeout)
	if s.ReadPool, err = openPool(ctx, databaseURL, cfg, &s.route, &s.reading, cfg.ReadConns, 0, onlyReads); err != nil {
		s.Pool.Close()
		return nil, err
	}
	s.Walks = semaphore.NewWeighted(mostWalks)
	s.reads = newPart(cfg.ReadConns, cfg.ReadConns/4)
	s.Changes = newPart(cfg.MaxConns/2, cfg.MaxConns/8)
	return s, nil
}

// Close waits for running statements and closes the connections.
func (s *DB) Close() {
	s.Pool.Close()
	s.ReadPool.Close()
}

func (c Config) withDefaults() Config {
	c.MaxConns, c.ReadConns, c.Lanes = cmp.Or(c.MaxConns, 16), cmp.Or(c.ReadConns, 8), cmp.Or(c.Lanes, 1)
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	c.Timeout, c.ReadTimeout = cmp.Or(c.Timeout, 5*time.Second), cmp.Or(c.ReadTimeout, 3*time.Second)
	return c
}

// CheckURL returns an error if the URL of a database is invalid.
func CheckURL(databaseURL string) error {
	_, err := ParseURL(databaseURL)
	return err
}

// openPool makes a pool of least to most connections. only holds statements with settings for the sessions of this
// pool; through a pooler they are not run. They run after the connection is made, so that target_session_attrs checks
// the server and not these settings.
func openPool(ctx context.Context, databaseURL string, cfg Config, route *route, reach *reach, most, least int, only string) (*pgxpool.Pool, error) {
	pc, err := ParseURL(databaseURL)
	if err != nil {
		return nil, err
	}
	pc.MaxConns, pc.MinConns = int32(most), int32(least)
	settings := maps.Clone(planner)
	if cfg.Lanes == push.Shards {
		settings["plan_cache_mode"] = "force_custom_plan" // so that the plan is for the server with the shard
	}
	// A program that is frozen or disconnected must not keep its locks.
	settings[idleLimit] = cmp.Or(pc.ConnConfig.RuntimeParams[idleLimit], Milliseconds(2*cfg.Timeout))
	maps.Copy(pc.ConnConfig.RuntimeParams, startup)
	for name := range settings {
		delete(pc.ConnConfig.RuntimeParams, name)
	}
	pc.BeforeConnect = func(ctx context.Context, cc *pgx.ConnConfig) error {
		pooled, err := route.find(ctx, cc, settings)
		if !pooled {
			maps.Copy(cc.RuntimeParams, settings)
		}
		if route.unnamed.Load() {
			unprepared(cc)
		}
		if err != nil {
			reach.learn(err)
		}
		return err
	}
	pc.ConnConfig.Tracer = reach
	keeps := pc.ConnConfig.OnPgError
	pc.ConnConfig.OnPgError = func(c *pgconn.PgConn, err *pgconn.PgError) bool { return !route.learn(err) && keeps(c, err) }
	// A ping costs a round trip. Loops that run each second need none; a connection that has died since then fails once, and is retried.
	pc.ShouldPing = func(_ context.Context, p pgxpool.ShouldPingParams) bool { return p.IdleDuration > pingAfter }
	pc.AfterConnect = func(ctx context.Context, c *pgx.Conn) (err error) {
		defer func() { reach.learn(err) }()
		if err := checkEncoding(c); err != nil {
			return err
		}
		if only != "" && !route.pooled.Load() {
			if _, err := c.Exec(ctx, only, pgx.QueryExecModeSimpleProtocol); err != nil {
				return err
			}
		}
		registerTypes(c.TypeMap())
		return nil
	}
	pool, err := pgxpool.NewWithConfig(ctx, pc)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	return pool, nil
}

// ParseURL parses the URL of a database. Its error hides the message of the parser, which may quote the password.
func ParseURL(databaseURL string) (*pgxpool.Config, error) {
	pc, err := pgxpool.ParseConfig(databaseURL)
	if err != nil {
		return nil, errors.New("DATABASE_URL: has a host, a port or a parameter that Postgres does not know; see https://www.postgresql.org/docs/current/libpq-connect.html")
	}
	// Do not depend on the defaults of the database and the role. Poolers accept these parameters, too.
	pc.ConnConfig.RuntimeParams["client_encoding"] = "UTF8"
	pc.ConnConfig.RuntimeParams["standard_conforming_strings"] = "on"
	return pc, nil
}

// checkEncoding rejects a database whose encoding cannot store every text. Postgres and poolers report the encoding to
// each new connection.
func checkEncoding(c *pgx.Conn) error {
	if is := c.PgConn().ParameterStatus("server_encoding"); is != "" && is != "UTF8" {
		return &UnreadyError{"wrong_encoding", "its encoding is " + is + ", and sendquota needs UTF8; create one with: CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0", nil}
	}
	return nil
}

// Milliseconds formats a duration as a whole number of milliseconds, the unit of Postgres settings.
func Milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
