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

// startup are the parameters of every connection, which poolers know as well.
var startup = map[string]string{"timezone": "UTC", "application_name": "sendquota"}

// planner are the settings of all transactions. Every statement here is served by an index. A plan cached while a table
// was small, or never analyzed, must not scan it later. Nor is one worth a start of parallel workers.
var planner = map[string]string{
	"enable_seqscan": "off", "enable_hashjoin": "off", "enable_mergejoin": "off",
	"plan_cache_mode": "force_generic_plan", "jit": "off", "max_parallel_workers_per_gather": "0",
}

// idleLimit is the setting of Postgres for how long a transaction may stand still before its locks are taken away from
// it.
const idleLimit = "idle_in_transaction_session_timeout"

// openPool makes a pool of so many connections at most, and at least. only are statements that make settings of its sessions
// alone: behind a pooler they are left out. They follow the connect, so that target_session_attrs judges the server and not them.
func openPool(ctx context.Context, databaseURL string, cfg Config, route *route, reach *reach, most, least int, only string) (*pgxpool.Pool, error) {
	pc, err := ParseURL(databaseURL)
	if err != nil {
		return nil, err
	}
	pc.MaxConns, pc.MinConns = int32(most), int32(least)
	settings := maps.Clone(planner)
	if cfg.Lanes == push.Shards {
		settings["plan_cache_mode"] = "force_custom_plan" // for the server that has the shard
	}
	// A program that is frozen, or cut off, must not keep its locks.
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

// ParseURL hides the parser's message, which may quote the password.
func ParseURL(databaseURL string) (*pgxpool.Config, error) {
	pc, err := pgxpool.ParseConfig(databaseURL)
	if err != nil {
		return nil, errors.New("DATABASE_URL: has a host, a port or a parameter that Postgres does not know; see https://www.postgresql.org/docs/current/libpq-connect.html")
	}
	// Whatever the defaults of the database and the role are, texts and statements mean what they say. Poolers know these, too.
	pc.ConnConfig.RuntimeParams["client_encoding"] = "UTF8"
	pc.ConnConfig.RuntimeParams["standard_conforming_strings"] = "on"
	return pc, nil
}

// checkEncoding refuses a database that cannot keep every text. Postgres, and poolers, tell its encoding to each new connection.
func checkEncoding(c *pgx.Conn) error {
	if is := c.PgConn().ParameterStatus("server_encoding"); is != "" && is != "UTF8" {
		return &UnreadyError{"wrong_encoding", "its encoding is " + is + ", and sendquota needs UTF8; make one with: CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0", nil}
	}
	return nil
}

func Milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// work uses a connection. It is told how often it ran before.
type work func(ctx context.Context, c *pgxpool.Conn, earlier int) error

// InTx runs work on a connection and, if Postgres says or means "try again", runs it again from the start. Each statement
// is a transaction of its own unless work begins one; what work leaves open when it fails is rolled back. work must find
// its own rows if an earlier run was committed after all.
func (s *DB) InTx(ctx context.Context, work work) error { return s.repeat(ctx, s.Pool, work) }

// Change is inTx for a request of one tenant. A tenant has a part of the connections for them.
func (s *DB) Change(ctx context.Context, tenant uuid.UUID, work work) error {
	return s.Within(ctx, s.Changes, tenant, func(ctx context.Context) error { return s.repeat(ctx, s.Pool, work) })
}

// These are what [pgx.RowToStructByPos] reads where a column is null: a struct has no place for that.
const (
	NoID   = `'00000000-0000-0000-0000-000000000000'::uuid`
	NoTime = `'0001-01-01Z'::timestamptz`
)

// Collect returns the rows of a statement of the service itself, which is run once.
func Collect[T any](ctx context.Context, s *DB, scan pgx.RowToFunc[T], sql string, args ...any) ([]T, error) {
	ctx, cancel := context.WithTimeout(ctx, s.Cfg.Timeout)
	defer cancel()
	rows, _ := s.Pool.Query(ctx, sql, args...)
	all, err := pgx.CollectRows(rows, scan)
	return all, Classify(err)
}

// Read is change for a request that only reads. It has connections of its own, on which Postgres ends long statements.
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

// part is connections that tenants share. While several tenants use them, each has half as many, and half of the time.
type part struct {
	*bulkhead.Bulkhead[uuid.UUID]
	answers atomic.Int64 // how often Postgres has answered on them
}

// newPart shares so many connections, of which each tenant has some at a time: at least one.
func newPart(connections, each int) *part {
	return &part{Bulkhead: bulkhead.New[uuid.UUID](int64(max(1, connections)), int64(max(1, each)))}
}

// Within does something for which it takes a connection of the tenant's part. That all of the part is in use is the
// tenant's doing only if Postgres answers.
func (s *DB) Within(ctx context.Context, part *part, tenant uuid.UUID, do func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.Cfg.Timeout)
	defer cancel()
	answers := part.answers.Load()
	if tenant != uuid.Nil { // what is not of any tenant makes nobody a neighbour
		s.Neighbours.Seen(tenant)
	}
	loan, err := part.Acquire(ctx, tenant, s.Neighbours.Weight())
	switch {
	case err != nil && part.answers.Load() == answers:
		return fmt.Errorf("%w: %v, and Postgres has not answered meanwhile", push.ErrUnavailable, err)
	case err != nil:
		return fmt.Errorf("%w: %w", push.ErrUnavailable, err)
	}
	defer s.Neighbours.Rest(loan, time.Now())
	if err = do(ctx); !errors.Is(err, push.ErrUnavailable) {
		part.answers.Add(1)
	}
	return err
}

// repeat runs work until it succeeds, or fails for good.
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
			continue // the rows of one transaction may lack several
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
			changes++ // many partitions may be dropped, one soon after another
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

// OnConn runs work on a connection, and rolls back what it leaves open.
func OnConn(ctx context.Context, pool *pgxpool.Pool, work func(c *pgxpool.Conn) error) error {
	c, err := pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer c.Release()
	err = work(c)
	if HasCode(err, readOnly) {
		pool.Reset() // every connection leads to a server that was demoted
	}
	if err != nil && !c.Conn().IsClosed() && c.Conn().PgConn().TxStatus() != 'I' {
		_, _ = c.Exec(ctx, "rollback") // a connection that cannot even do this is dropped by Release
	}
	return err
}

// Fill puts the rows of two columns into a map.
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
