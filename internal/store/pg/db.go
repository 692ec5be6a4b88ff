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

// mostWalks is the maximum number of concurrent statements that read all partitions. Each takes some hundred of the
// server's locks.
const mostWalks = 2

// Config holds the limits and settings of the store. A zero value means the default, which the comment names.
type Config struct {
	MaxConns    int           // connections for changes; 16
	ReadConns   int           // connections for reads of tenants; 8
	Timeout     time.Duration // of one transaction, including the wait for a connection; 5 s
	ReadTimeout time.Duration // of one statement that only reads, enforced by Postgres; 3 s
	Lanes       int           // number of lanes that divide all recipients; a transaction touches one lane; 1

	// Channels lists the channels that can send. Pushes for other channels wait until they expire. Nil: all can send.
	Channels []string

	// Computing limits how many orders of one tenant are decided at a time; nil: no limit.
	Computing *bulkhead.Computing[uuid.UUID]

	// Sealer seals and opens the secrets of webhooks; nil: no webhook can be created, and none can sign.
	Sealer *seal.Sealer

	// ExternalPasswords allows links and passwords also to users of the OIDC provider.
	ExternalPasswords bool

	// Log reports failures to connect to the database with their reasons, and the end of each failure; nil: no log.
	Log *slog.Logger

	// Observe receives the size of every group of "book", "batch", "claim", "finish" or "look"; nil: ignored.
	Observe func(kind string, size int)
}

// DB is the connection to Postgres that all subjects of the store share. It is safe for concurrent use.
type DB struct {
	Cfg        Config        // with the defaults applied
	Pool       *pgxpool.Pool // for changes
	ReadPool   *pgxpool.Pool
	Changes    *part // the connections of Pool for single changes
	Layouts    Layouts
	Neighbours bulkhead.Neighbours[uuid.UUID]
	Walks      *semaphore.Weighted // statements that read all partitions

	route        route // for both pools
	reading      reach // for ReadPool
	reads        *part // all connections of ReadPool
	installation installation
}

// Open creates the pools. It succeeds while Postgres is down, because connections are made when they are needed.
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

// CheckURL returns an error if the URL of a database is invalid.
func CheckURL(databaseURL string) error {
	_, err := ParseURL(databaseURL)
	return err
}

// MaybeOne reports whether a single request may have caused the error of a whole group.
func MaybeOne(err error) bool { return !errors.Is(err, push.ErrUnavailable) }

// Observe returns a function that reports the size of a group of a kind to [Config.Observe], or nil if that is not
// set.
func (s *DB) Observe(kind string) func(int) {
	if s.Cfg.Observe == nil {
		return nil
	}
	return func(size int) { s.Cfg.Observe(kind, size) }
}
