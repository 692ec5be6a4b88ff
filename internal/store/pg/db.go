package pg

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/semaphore"

	"github.com/sendquota/sendquota/internal/bulkhead"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/seal"
)

// mostWalks is how many statements at a time look through all partitions. Each takes some hundred of a server's locks.
const mostWalks = 2

// Config bounds the store. Zero values mean the defaults.
type Config struct {
	MaxConns    int           // for what changes something; 16
	ReadConns   int           // for what tenants read; 8
	Timeout     time.Duration // for one transaction, waiting for a connection included; 5 s
	ReadTimeout time.Duration // for one statement that only reads, by Postgres; 3 s
	Lanes       int           // as many as divide all recipients: a transaction touches one of them; 1

	// Channels are those that can be sent through. Pushes for others wait until they expire; nil: all can be sent.
	Channels []string

	// Computing has turns at deciding orders of one tenant; nil: there is always one.
	Computing *bulkhead.Computing[uuid.UUID]

	// Sealer seals and opens secrets of webhooks; nil: none can be made, and none signs.
	Sealer *seal.Sealer

	// ExternalPasswords lets users of the OIDC provider have links and passwords too.
	ExternalPasswords bool

	// Log is told when the database cannot be connected to, and why, and when it can be again; nil: it is not logged.
	Log *slog.Logger

	// Observe is told the size of every group of "book", "batch", "claim", "finish" or "look"; nil: ignored.
	Observe func(kind string, size int)
}

// DB is the connection to Postgres that all subjects of the store share. It is safe for concurrent use.
type DB struct {
	Cfg        Config        // with its defaults
	Pool       *pgxpool.Pool // for changes
	ReadPool   *pgxpool.Pool
	Changes    *part // of Pool, for single changes
	Layouts    Layouts
	Neighbours bulkhead.Neighbours[uuid.UUID]
	Walks      *semaphore.Weighted // statements that read all partitions

	route        route // of both pools
	reading      reach // of ReadPool
	reads        *part // of ReadPool
	installation installation
}

// Open makes the pools of connections. It succeeds while Postgres is down: connections are made as they are needed.
func Open(ctx context.Context, databaseURL string, cfg Config) (*DB, error) {
	cfg = cfg.withDefaults()
	s := &DB{Cfg: cfg, reading: reach{pool: "reads", log: cfg.Log}}
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

// CheckURL says what is wrong with the URL of a database.
func CheckURL(databaseURL string) error {
	_, err := ParseURL(databaseURL)
	return err
}

// MaybeOne reports whether one request may have caused the error of a whole group.
func MaybeOne(err error) bool { return !errors.Is(err, push.ErrUnavailable) }

func (s *DB) Observe(kind string) func(int) {
	if s.Cfg.Observe == nil {
		return nil
	}
	return func(size int) { s.Cfg.Observe(kind, size) }
}
