package pg

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"
	pgxuuid "github.com/vgarvardt/pgx-google-uuid/v5"

	"github.com/sendquota/sendquota/internal/bulkhead"
	"github.com/sendquota/sendquota/internal/push"
)

// startup lists the parameters of every connection. Poolers accept these, too.
var startup = map[string]string{"timezone": "UTC", "application_name": "sendquota"}

// planner lists the planner settings of all transactions. An index serves every statement of the store. A plan that
// was cached while a table was small or not analyzed must not scan that table later. No statement is worth the start
// of parallel workers.
var planner = map[string]string{
	"enable_seqscan": "off", "enable_hashjoin": "off", "enable_mergejoin": "off",
	"plan_cache_mode": "force_generic_plan", "jit": "off", "max_parallel_workers_per_gather": "0",
}

// idleLimit names the Postgres setting that bounds how long an open transaction may be idle before Postgres ends it
// and releases its locks.
const idleLimit = "idle_in_transaction_session_timeout"

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
		pgxuuid.Register(c.TypeMap())
		c.TypeMap().RegisterType(&pgtype.Type{Name: "timestamptz", OID: pgtype.TimestamptzOID, Codec: &pgtype.TimestamptzCodec{ScanLocation: time.UTC}})
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

// work uses a connection. earlier is the number of runs before this one.
type work func(ctx context.Context, c *pgxpool.Conn, earlier int) error

// InTx runs work on a connection. It runs work again from the start after errors that a repetition can fix. Each
// statement is a transaction of its own unless work begins one. If work fails, its open transaction is rolled back. An
// earlier run may have been committed although its reply was lost, so work must recognise the rows that it has already
// written.
func (s *DB) InTx(ctx context.Context, work work) error { return s.repeat(ctx, s.Pool, work) }

// Change is [DB.InTx] for a request of one tenant. It limits a tenant to a share of the connections.
func (s *DB) Change(ctx context.Context, tenant uuid.UUID, work work) error {
	return s.Within(ctx, s.Changes, tenant, func(ctx context.Context) error { return s.repeat(ctx, s.Pool, work) })
}

// SQL values that replace null for [pgx.RowToStructByPos], which cannot store null in plain struct fields.
const (
	// NoID is the zero uuid.
	NoID = `'00000000-0000-0000-0000-000000000000'::uuid`
	// NoTime is the zero time.
	NoTime = `'0001-01-01Z'::timestamptz`
)

// Collect returns the rows of a statement that belongs to no tenant's request. It runs the statement once.
func Collect[T any](ctx context.Context, s *DB, scan pgx.RowToFunc[T], sql string, args ...any) ([]T, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Cfg.Timeout)
	defer cancel()
	rows, _ := s.Pool.Query(ctx, sql, args...)
	all, err := pgx.CollectRows(rows, scan)
	return all, Classify(err)
}

// Read is [DB.Change] for a request that only reads. It uses ReadPool, whose long statements Postgres cancels.
func (s *DB) Read(ctx context.Context, tenant uuid.UUID, work func(ctx context.Context, c Reader) error) error {
	return s.Within(ctx, s.reads, tenant, func(ctx context.Context) error {
		return s.repeat(ctx, s.ReadPool, func(ctx context.Context, c *pgxpool.Conn, _ int) error {
			r := Reader{Conn: c}
			if s.route.pooled.Load() {
				r.timeout = Milliseconds(s.Cfg.ReadTimeout)
			}
			return work(ctx, r)
		})
	})
}

// part is a set of connections that tenants share. While several tenants use it, the limits of each tenant, in
// connections and in time, are halved.
type part struct {
	*bulkhead.Bulkhead[uuid.UUID]
	answers atomic.Int64 // number of answers of Postgres on these connections
}

// newPart shares a number of connections among tenants. A tenant can use each of them at a time, and always at least
// one.
func newPart(connections, each int) *part {
	return &part{Bulkhead: bulkhead.New[uuid.UUID](int64(max(1, connections)), int64(max(1, each)))}
}

// Within calls do while it holds one of the tenant's connections of the part. If all are in use, the error blames the
// tenant's load only if Postgres has answered meanwhile.
func (s *DB) Within(ctx context.Context, part *part, tenant uuid.UUID, do func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.Cfg.Timeout)
	defer cancel()
	answers := part.answers.Load()
	if tenant != uuid.Nil { // work of the service itself does not count as a neighbour
		s.Neighbours.Seen(tenant)
	}
	loan, err := part.Acquire(ctx, tenant, s.Neighbours.Weight())
	switch {
	case err != nil && part.answers.Load() == answers:
		return fmt.Errorf("%w: %v, and Postgres did not answer", push.ErrUnavailable, err)
	case err != nil:
		return fmt.Errorf("%w: %w", push.ErrUnavailable, err)
	}
	defer s.Neighbours.Rest(loan, time.Now())
	if err = do(ctx); !errors.Is(err, push.ErrUnavailable) {
		part.answers.Add(1)
	}
	return err
}

// repeat runs work until it succeeds or fails permanently.
func (s *DB) repeat(ctx context.Context, pool *pgxpool.Pool, work work) error {
	ctx, cancel := context.WithTimeout(ctx, s.Cfg.Timeout)
	defer cancel()
	for earlier, tries, changes := 0, 0, 0; ; earlier++ {
		err := OnConn(ctx, pool, func(c *pgxpool.Conn) error {
			if err := s.Layouts.Fresh(ctx, c); err != nil {
				return err
			}
			return work(ctx, c, earlier)
		})
		made, parted, err := s.MakePart(ctx, err)
		if made > 0 {
			continue // the rows of one transaction may need several new partitions
		}
		if old, ok := errors.AsType[outdated](err); ok && tries < 4 {
			if err = old.Reload(ctx); err == nil {
				tries++
				continue
			}
		}
		changed := Repartitioned(err) && changes < 25
		if err == nil || tries == 4 && !changed || !s.Layouts.Mend(err) && !parted && !Again(err) {
			return Classify(err)
		}
		wait := 20 * time.Millisecond
		if changed {
			changes++ // many partitions may be dropped in quick succession
		} else {
			wait <<= 2 * tries
			tries++
		}
		select {
		case <-ctx.Done():
			return Classify(err)
		case <-time.After(wait):
		}
	}
}

// OnConn runs work on a connection and rolls back a transaction that work leaves open.
func OnConn(ctx context.Context, pool *pgxpool.Pool, work func(c *pgxpool.Conn) error) error {
	c, err := pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer c.Release()
	err = work(c)
	if HasCode(err, readOnly) {
		pool.Reset() // all connections lead to a server that became a standby
	}
	if err != nil && !c.Conn().IsClosed() && c.Conn().PgConn().TxStatus() != 'I' {
		_, _ = c.Exec(ctx, "rollback") // if this fails, Release closes the connection
	}
	return err
}

// Fill adds rows of two columns, key and value, to a map.
func Fill[K comparable, V any](all map[K]V, rows pgx.Rows) error {
	var (
		key   K
		value V
	)
	_, err := pgx.ForEachRow(rows, []any{&key, &value}, func() error {
		all[key] = value
		return nil
	})
	return err
}
