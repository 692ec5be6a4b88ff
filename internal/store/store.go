package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sendquota/sendquota/internal/groupcommit"
	"github.com/sendquota/sendquota/internal/push"
)

// The pauses make groups larger. Measured with `make bench`: a quarter more
// deliveries and submits per second, for this much latency under load. Batches
// are large enough by themselves.
const (
	attemptPause = 4 * time.Millisecond
	bookPause    = 2 * time.Millisecond
)

// Store is the service's view of Postgres. It is safe for concurrent use.
type Store struct {
	pool     *pgxpool.Pool
	cfg      Config
	bookings *groupcommit.Group[Order, []Verdict] // of single pushes
	batches  *groupcommit.Group[Order, []Verdict]
	claims   *groupcommit.Group[ClaimOrder, Claim]
	finishes *groupcommit.Group[Finish, bool]
	looks    *groupcommit.Group[span, []HeldBooking]
}

// Config bounds the store. Zero values mean the defaults.
type Config struct {
	MaxConns int32         // 16
	Timeout  time.Duration // for one transaction, waiting for a connection included; 5 s
	// Observe is told the size of every group of "book", "batch", "claim", "finish" or "look";
	// nil: nobody.
	Observe func(kind string, size int)
}

// Open connects to Postgres. It succeeds while Postgres is down: connections
// are made as they are needed.
func Open(ctx context.Context, databaseURL string, cfg Config) (*Store, error) {
	pc, err := parseURL(databaseURL)
	if err != nil {
		return nil, err
	}
	if cfg.MaxConns == 0 {
		cfg.MaxConns = 16
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = 5 * time.Second
	}
	pc.MaxConns = cfg.MaxConns
	pc.MinConns = 2
	// Every statement here is served by an index. A plan cached while a table
	// was small, or never analyzed, must not scan it later.
	for name, value := range map[string]string{
		"enable_seqscan": "off", "enable_hashjoin": "off", "enable_mergejoin": "off",
		"plan_cache_mode": "force_generic_plan", "jit": "off", "timezone": "UTC",
		"application_name": "sendquota",
	} {
		pc.ConnConfig.RuntimeParams[name] = value
	}
	// A program that is frozen, or cut off, must not keep its locks.
	if _, set := pc.ConnConfig.RuntimeParams[idleLimit]; !set {
		pc.ConnConfig.RuntimeParams[idleLimit] = strconv.FormatInt(2*cfg.Timeout.Milliseconds(), 10) // ms
	}
	pc.AfterConnect = func(_ context.Context, c *pgx.Conn) error {
		c.TypeMap().RegisterType(&pgtype.Type{Name: "timestamptz", OID: pgtype.TimestamptzOID, Codec: &pgtype.TimestamptzCodec{ScanLocation: time.UTC}})
		return nil
	}
	pool, err := pgxpool.NewWithConfig(ctx, pc)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	s := &Store{pool: pool, cfg: cfg}
	s.bookings = &groupcommit.Group[Order, []Verdict]{
		Run: s.bookTogether, MaxWeight: 1000, Pause: bookPause, Alone: maybeOne, Observe: s.observe("book"),
	}
	s.batches = &groupcommit.Group[Order, []Verdict]{
		Run: s.bookTogether, Weight: Order.weight, MaxWeight: 1000, Parallel: 2, Alone: maybeOne, Observe: s.observe("batch"),
	}
	s.claims = &groupcommit.Group[ClaimOrder, Claim]{
		Run: s.claimTogether, MaxWeight: 500, Pause: attemptPause, Observe: s.observe("claim"),
	}
	s.finishes = &groupcommit.Group[Finish, bool]{
		Run: s.finishTogether, MaxWeight: 500, Pause: attemptPause, Alone: maybeOne, Observe: s.observe("finish"),
	}
	s.looks = &groupcommit.Group[span, []HeldBooking]{
		Run: s.lookTogether, MaxWeight: 500, Alone: maybeOne, Observe: s.observe("look"),
	}
	return s, nil
}

// CheckURL says what is wrong with the URL of a database.
func CheckURL(databaseURL string) error {
	_, err := parseURL(databaseURL)
	return err
}

// parseURL hides what the parser says, which may quote the password.
func parseURL(databaseURL string) (*pgxpool.Config, error) {
	pc, err := pgxpool.ParseConfig(databaseURL)
	if err != nil {
		return nil, errors.New("DATABASE_URL: has a host, a port or a parameter that Postgres does not know; see https://www.postgresql.org/docs/current/libpq-connect.html")
	}
	return pc, nil
}

// idleLimit is the setting of Postgres for how long a transaction may stand
// still before its locks are taken away from it.
const idleLimit = "idle_in_transaction_session_timeout"

// maybeOne reports whether one request may have spoiled it for a whole group.
func maybeOne(err error) bool { return !errors.Is(err, push.ErrUnavailable) }

func (s *Store) observe(kind string) func(int) {
	if s.cfg.Observe == nil {
		return nil
	}
	return func(size int) { s.cfg.Observe(kind, size) }
}

// Close waits for running statements and closes the connections.
func (s *Store) Close() { s.pool.Close() }

// Ping reports whether Postgres answers, and has our tables.
func (s *Store) Ping(ctx context.Context) error {
	_, err := s.pool.Exec(ctx, `SELECT FROM pushes LIMIT 0`)
	return classify(err)
}

// inTx runs work in a transaction of its own and, if Postgres says or means
// "try again", runs it again from the start. work must therefore find its own
// rows if an earlier run was committed after all. It is told how often it ran
// before.
func (s *Store) inTx(ctx context.Context, work func(ctx context.Context, c *pgxpool.Conn, earlier int) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	for earlier := 0; ; earlier++ {
		err := s.once(ctx, func(c *pgxpool.Conn) error { return work(ctx, c, earlier) })
		if err == nil || earlier == 4 || !again(err) {
			return classify(err)
		}
		select {
		case <-ctx.Done():
			return classify(err)
		case <-time.After(20 * time.Millisecond << (2 * earlier)):
		}
	}
}

// once runs work on a connection, and rolls back what it leaves open.
func (s *Store) once(ctx context.Context, work func(c *pgxpool.Conn) error) error {
	c, err := s.pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer c.Release()
	err = work(c)
	if err != nil && !c.Conn().IsClosed() && c.Conn().PgConn().TxStatus() != 'I' {
		_, _ = c.Exec(ctx, "rollback") // a connection that can not even do this is dropped by Release
	}
	return err
}

// again reports whether running a transaction again can help: the connection
// broke, the server goes down or comes up, or transactions got in each other's
// way.
func again(err error) bool {
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) {
		switch pgErr.Code {
		case "57P01", "57P02", "57P03", "25P03", "40001", "40P01", "53300", "53200":
			return true
		}
		return strings.HasPrefix(pgErr.Code, "08")
	}
	var connect *pgconn.ConnectError
	var network net.Error
	return errors.As(err, &connect) || errors.As(err, &network) || pgconn.SafeToRetry(err) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed)
}

// classify turns what can be tried again later into [push.ErrUnavailable].
func classify(err error) error {
	var pgErr *pgconn.PgError
	switch {
	case errors.As(err, &pgErr) && pgErr.Code == "42P01":
		return fmt.Errorf("the database lacks our tables; run: sendquota migrate: %w", err)
	case errors.Is(err, pgx.ErrNoRows):
		return push.ErrNotFound
	case err != nil && (again(err) || errors.Is(err, context.DeadlineExceeded)):
		return fmt.Errorf("%w: %w", push.ErrUnavailable, err)
	}
	return err
}
