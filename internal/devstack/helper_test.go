package devstack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/redisclient"
)

// helperVariable makes the test binary a program that starts a Stack: a process that a test can kill, or run as another
// user.
const helperVariable = "DEVSTACK_TEST_HELPER"

func TestMain(m *testing.M) {
	if dir, ok := os.LookupEnv(helperVariable); ok {
		if err := helper(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// helperReport is the helper's line of JSON when it is ready.
type helperReport struct {
	Database, Redis       string
	PostgresPid, RedisPid int
}

// helper starts a Stack in dir, which may be empty, and keeps it until its
// stdin ends. On the line "pause" it pauses both servers and says "paused".
func helper(dir string) error {
	s, err := Start(context.Background(), Config{Dir: dir, OwnProcess: true, noInstall: true, Progress: os.Stderr})
	if err != nil {
		return err
	}
	report := helperReport{s.Postgres.URL, s.Redis.URL, s.Postgres.Pid(), s.Redis.Pid()}
	if err := json.NewEncoder(os.Stdout).Encode(report); err != nil {
		return err
	}
	var word string
	if _, err := fmt.Scanln(&word); err == nil && word == "pause" {
		if err := errors.Join(s.Postgres.Pause(), s.Redis.Pause()); err != nil {
			return err
		}
		fmt.Println("paused")
		if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
			return err
		}
	}
	return s.Close()
}

// openDir is a temp folder that every user may enter, as a project's folder
// usually is; the one of testing.T is closed to others.
func openDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "devstack-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func start(t *testing.T, c Config) *Stack {
	t.Helper()
	c.OwnProcess, c.Progress = true, t.Output()
	s, err := Start(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeIt(t, s) })
	return s
}

type closer interface{ Close() error }

func closeIt(t *testing.T, c closer) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// query runs one statement and returns its one value, or nil.
func query(t *testing.T, url, sql string) any {
	t.Helper()
	v, err := tryQuery(t.Context(), url, sql)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

func tryQuery(ctx context.Context, url, sql string) (any, error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return nil, err
	}
	defer conn.Close(ctx)
	rows, err := conn.Query(ctx, sql)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var value any
	for rows.Next() {
		values, err := rows.Values()
		if err != nil {
			return nil, err
		}
		value = values[0]
	}
	return value, rows.Err()
}

func client(t *testing.T, url string) redisclient.Client {
	t.Helper()
	c, err := redisClient(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func setting(t *testing.T, c redisclient.Client, name string) string {
	t.Helper()
	v, err := c.ConfigGet(t.Context(), name).Result()
	if err != nil {
		t.Fatal(err)
	}
	return v[name]
}

// eventually waits for a fact.
func eventually(t *testing.T, what string, fact func() bool) {
	t.Helper()
	for end := time.Now().Add(stopTimeout); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if fact() {
			return
		}
	}
	t.Fatal("still not so: ", what)
}

// allOnly skips a test that starts servers from nothing, more than once, where the run is to be short.
func allOnly(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("only `make test-all` runs this")
	}
}
