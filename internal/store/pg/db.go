package pg

import (
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/semaphore"

	"github.com/sendquota/sendquota/internal/bulkhead"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/seal"
)

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
	Cfg        Config // with the defaults applied
	conns             // for changes
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

// conns runs transactions on the connections of a pool.
type conns struct {
	Pool *pgxpool.Pool
	db   *DB
}

// installation caches the name and the secret of the database.
type installation struct {
	name   atomic.Pointer[string]
	secret atomic.Pointer[[]byte]
	asking atomic.Bool
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
