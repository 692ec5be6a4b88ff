package devstack

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log"
	"slices"
	"strings"
	"sync"
)

// Config selects the servers to find or start. The zero value starts throw-away servers that are quick and lose
// everything.
type Config struct {
	// Dir keeps the data between runs. Servers started with a Dir are
	// durable (fsync, append-only file) and ask for a password that is kept
	// in Dir. Empty means throw-away data, removed by Close.
	Dir string

	// DatabaseURL and RedisURL are servers that a person named for this run, by a
	// flag or by TEST_DATABASE_URL and TEST_REDIS_URL: never DATABASE_URL and
	// REDIS_URL. A URL that is set is used as it is, without a question to the server.
	DatabaseURL, RedisURL string

	// Durable makes throw-away servers as durable, and so as slow, as those
	// with a Dir. Benchmarks need it.
	Durable bool

	// SharedBuffers is the size of Postgres' page cache in megabytes; 0: 128.
	SharedBuffers int

	// PostgresSettings are more settings of Postgres, in the form "name=value".
	PostgresSettings []string

	// OwnProcess insists on a child process of our own, which a test may
	// kill: URLs and miniredis are not used.
	OwnProcess bool

	// Seed fills a new throw-away Postgres.
	Seed Seed

	// AllowMiniredis permits miniredis where no Redis can be had. It proves
	// nothing about Redis, so tests do not set it.
	AllowMiniredis bool

	// ClusterNode makes Redis a node of a cluster, still alone and without
	// slots.
	ClusterNode bool

	// noInstall forbids to install packages.
	noInstall bool

	// Progress receives a line for everything that is found, started or installed. Nil means silence.
	Progress io.Writer

	// searchPaths lists where to search for programs; tests replace it.
	searchPaths *searchPaths

	log *log.Logger // of Progress, for both services at once
}

// Seed is the initial content of a throw-away Postgres. Its data folder is cached in Go's build cache under the name,
// and copied by later starts.
type Seed struct {
	Name string                                      // identifies the result of Make; another name makes another folder
	Make func(ctx context.Context, url string) error // nil: only an empty database called sendquota
}

// Stack is one Postgres and one Redis.
type Stack struct {
	Postgres, Redis *Server
}

// Start finds or starts both services at the same time and returns when both
// answer. The context bounds the start only. If one fails, the other is
// closed again.
func Start(ctx context.Context, c Config) (*Stack, error) {
	c = c.prepared()
	var (
		s                     Stack
		postgresErr, redisErr error
		both                  sync.WaitGroup
	)
	both.Go(func() { s.Postgres, postgresErr = StartPostgres(ctx, c) })
	both.Go(func() { s.Redis, redisErr = StartRedis(ctx, c) })
	both.Wait()
	if err := errors.Join(postgresErr, redisErr); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return &s, nil
}

// Close stops what was started and removes throw-away data.
func (s *Stack) Close() error {
	var err error
	for _, server := range []*Server{s.Redis, s.Postgres} {
		if server != nil {
			err = errors.Join(err, server.Close())
		}
	}
	return err
}

// prepared fills in the defaults, so that the rest need not ask for nil.
func (c Config) prepared() Config {
	if c.log == nil {
		c.log = log.New(cmp.Or(c.Progress, io.Discard), "", 0)
	}
	if c.searchPaths == nil {
		c.searchPaths = usualPaths()
	}
	return c
}

// durable reports whether an acknowledged write must survive a crash.
func (c Config) durable() bool { return c.Dir != "" || c.Durable }

// services are the variables that name the servers of services.
var services = []string{"DATABASE_URL", "REDIS_URL"}

// WithoutServices returns an environment without DATABASE_URL and REDIS_URL, and lists which of the two were set. Development
// and tests leave them out: in a shell of production they name its servers.
func WithoutServices(environ []string) (rest, left []string) { return Without(environ, services...) }

// Without returns an environment without some variables, and lists which of them were set.
func Without(environ []string, names ...string) (rest, left []string) {
	rest = slices.Clone(environ)
	for _, name := range names {
		rest = slices.DeleteFunc(rest, func(entry string) bool {
			value, is := strings.CutPrefix(entry, name+"=")
			if is && value != "" && !slices.Contains(left, name) {
				left = append(left, name)
			}
			return is
		})
	}
	return rest, left
}
