// Package testenv is the harness of tests, benchmarks and chaos: real Postgres and Redis servers, found or started by
// devstack on first use; installations of sendquota, whose programs run as child processes; a push provider that
// records its requests; and the main function and the progress report of programs that are not tests. It is for tests
// only.
//
// A package whose tests need servers hands its TestMain over:
//
//	func TestMain(m *testing.M) { testenv.Main(m) }
//
// `go test ./...` works without any setting: each package starts servers of its own.
// `make test` starts one of each for all of them (testservers), and names them in
// TEST_DATABASE_URL and TEST_REDIS_URL. So may a machine without the programs of
// these servers: own databases are made in Postgres, and empty indexes of Redis are
// used, while what is already there is never touched. DATABASE_URL and REDIS_URL,
// which may name servers of production, are taken out of the environment of tests.
package testenv

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/devstack"
	"github.com/sendquota/sendquota/internal/process"
	"github.com/sendquota/sendquota/internal/testenv/faultproxy"
)

// These variables name the servers that the tests of several processes share.
const (
	DatabaseVariable = "TEST_DATABASE_URL"
	RedisVariable    = "TEST_REDIS_URL"
)

// startTime bounds the start of a server, an installation included.
const startTime = 10 * time.Minute

// servers are shared by all tests of one test binary.
var servers = NewServers(devstack.Config{
	DatabaseURL: os.Getenv(DatabaseVariable),
	RedisURL:    os.Getenv(RedisVariable),
	Progress:    os.Stderr,
})

// Servers are one Postgres and one Redis. Each is started on first use. A failure is kept: later calls fail at once.
type Servers struct {
	postgres func() (*postgres, error)
	redis    func() (*indexes, error)
	mu       sync.Mutex
	closers  []func() error // of those that were started
}

// NewServers returns servers that are found or started by a devstack.Config.
func NewServers(c devstack.Config) *Servers {
	s := new(Servers)
	s.postgres = sync.OnceValues(func() (*postgres, error) {
		p, err := newPostgres(c)
		if err == nil {
			s.onClose(p.close)
		}
		return p, err
	})
	s.redis = sync.OnceValues(func() (*indexes, error) {
		x, err := newIndexes(c)
		if err == nil {
			s.onClose(x.server.Close)
		}
		return x, err
	})
	return s
}

func (s *Servers) onClose(f func() error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closers = append(s.closers, f)
}

// Main runs the tests of a package, stops the servers that they used and ends the process. It calls setup first; the
// cleanups of setup run after the tests.
func Main(m *testing.M, setup ...func(t T)) {
	IgnoreServices()
	code := 1
	err := Run(context.Background(), func(t T) {
		for _, f := range setup {
			f(t)
		}
		code = m.Run()
	})
	if err := errors.Join(err, servers.Close()); err != nil {
		fmt.Fprintln(os.Stderr, "testenv:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// IgnoreServices removes DATABASE_URL and REDIS_URL from the environment, and reports it: tests must not reach the
// servers of services.
func IgnoreServices() {
	_, left := devstack.WithoutServices(os.Environ())
	for _, name := range left {
		_ = os.Unsetenv(name) // fails on a name that is none
	}
	if len(left) > 0 {
		fmt.Fprintf(os.Stderr, "ignoring %s: tests use servers of their own; %s and %s name others\n", strings.Join(left, " and "), DatabaseVariable, RedisVariable)
	}
}

// WithServers calls f with the variables that let the tests of other processes
// share one Postgres and one Redis. They are stopped when f returns.
func WithServers(ctx context.Context, f func(environment []string) error) error {
	seed, err := newSeed()
	if err != nil {
		return err
	}
	stack, err := devstack.Start(ctx, devstack.Config{
		DatabaseURL: os.Getenv(DatabaseVariable), RedisURL: os.Getenv(RedisVariable), Seed: seed, Progress: os.Stderr,
	})
	if err != nil {
		return err
	}
	err = f([]string{DatabaseVariable + "=" + stack.Postgres.URL, RedisVariable + "=" + stack.Redis.URL})
	return errors.Join(err, stack.Close())
}

// Close stops the servers that were started.
func (s *Servers) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	for _, f := range s.closers {
		err = errors.Join(err, f())
	}
	s.closers = nil
	return err
}

// OwnRedis starts a Redis for this test alone, which the test may flush,
// kill, pause and restart. It keeps nothing over a restart. It is stopped when
// the test ends.
func OwnRedis(t T) *devstack.Server {
	t.Helper()
	return own(t, devstack.StartRedis, devstack.Config{})
}

// OwnPostgres starts a Postgres for this test alone, which the test may kill, pause and restart. Its URL names a
// migrated database. It is stopped when the test ends. Acknowledged writes survive a kill. settings have the form
// "name=value".
func OwnPostgres(t T, settings ...string) *devstack.Server {
	t.Helper()
	seed, err := newSeed()
	Check(t, err)
	s := own(t, devstack.StartPostgres, devstack.Config{Seed: seed, PostgresSettings: settings})
	admin, err := withDatabase(s.URL, "postgres")
	Check(t, err)
	for _, statement := range []string{"DROP DATABASE sendquota", "CREATE DATABASE sendquota TEMPLATE " + seed.Name} {
		Exec(t, admin, statement)
	}
	return s
}

// PgBouncer starts a PgBouncer in transaction mode in front of the Postgres of a URL, for this test alone. connections
// is the size of its pool for each database. settings have the form "name = value". It is stopped when the test ends.
func PgBouncer(t T, postgres string, connections int, settings ...string) *devstack.Server {
	t.Helper()
	return own(t, func(ctx context.Context, c devstack.Config) (*devstack.Server, error) {
		return devstack.StartPgBouncer(ctx, c, postgres, connections, settings...)
	}, devstack.Config{})
}

func own(t T, start func(context.Context, devstack.Config) (*devstack.Server, error), c devstack.Config) *devstack.Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startTime)
	defer cancel()
	c.OwnProcess, c.Progress = true, os.Stderr
	s, err := start(ctx, c)
	Check(t, err)
	Finally(t, s.Close)
	return s
}

// FreeAddr returns a loopback address without a listener.
func FreeAddr(t T) string {
	t.Helper()
	addr, err := process.FreeAddr()
	Check(t, err)
	return addr
}

// Proxy starts a proxy to the server of a URL, and returns the URL through it.
func Proxy(t T, server string) (p *faultproxy.Proxy, through string) {
	t.Helper()
	u, err := url.Parse(server)
	Check(t, err)
	p, err = faultproxy.New(u.Host)
	Check(t, err)
	t.Cleanup(func() { _ = p.Close() })
	u.Host = p.Addr()
	return p, u.String()
}
