// Package testenv gives each test a Postgres database and a Redis of its own,
// on real servers that are found or started by devstack when the first test
// asks. It is for tests only.
//
// A package whose tests need servers hands its TestMain over:
//
//	func TestMain(m *testing.M) { testenv.Main(m) }
//
// `go test ./...` works without any setting. If DATABASE_URL or REDIS_URL is
// set, that server is used: own databases are made in it, and own indexes are
// borrowed from it, while what is already there is never touched.
package testenv

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/devstack"
)

// startTime bounds the start of a server, an installation included.
const startTime = 10 * time.Minute

// servers are shared by all tests of one test binary.
var servers environment

// environment starts each server when it is first asked for. A failure is
// kept: the tests that follow fail at once instead of trying it all again.
type environment struct {
	mu          sync.Mutex
	postgres    *postgres
	postgresErr error
	redis       *indexes
	redisErr    error
}

// Main runs the tests of a package, stops the servers that they asked for and
// ends the process.
func Main(m *testing.M) {
	code := m.Run()
	if err := servers.close(); err != nil {
		fmt.Fprintln(os.Stderr, "testenv:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

func (e *environment) close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	var err error
	if e.redis != nil {
		err = errors.Join(err, e.redis.server.Close())
	}
	if e.postgres != nil {
		err = errors.Join(err, e.postgres.close())
	}
	e.redis, e.postgres = nil, nil
	return err
}

// config is what every server of a test is started with.
func config() devstack.Config {
	return devstack.Config{
		DatabaseURL: os.Getenv("DATABASE_URL"),
		RedisURL:    os.Getenv("REDIS_URL"),
		Progress:    os.Stderr,
	}
}

// OwnRedis starts a Redis for this test alone, which the test may flush,
// kill, pause and restart. It keeps nothing over a restart. It is stopped when
// the test ends.
func OwnRedis(t testing.TB) *devstack.Server {
	t.Helper()
	return own(t, devstack.StartRedis)
}

// OwnPostgres starts a Postgres for this test alone, which the test may kill,
// pause and restart. Its URL names a migrated database. It is stopped when
// the test ends. What it acknowledged survives that it is killed.
func OwnPostgres(t testing.TB) *devstack.Server {
	t.Helper()
	s := own(t, devstack.StartPostgres)
	if err := migrate(t.Context(), s.URL); err != nil {
		t.Fatal(err)
	}
	return s
}

func own(t testing.TB, start func(context.Context, devstack.Config) (*devstack.Server, error)) *devstack.Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startTime)
	defer cancel()
	c := config()
	c.OwnProcess = true
	s, err := start(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// newName is the name of a new database.
func newName() string { return "sendquota_test_" + strings.ToLower(rand.Text()[:12]) }
