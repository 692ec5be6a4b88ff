package devstack

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/redisclient"
)

func TestThrowAway_Removed(t *testing.T) {
	temp := openDir(t)
	if err := os.Chmod(temp, 0o777); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", temp)
	s := start(t, Config{})
	postgres, redis := s.Postgres.Pid(), s.Redis.Pid()
	if !alive(postgres) || !alive(redis) {
		t.Fatalf("processes %d and %d are not both alive", postgres, redis)
	}
	for name, want := range map[string]string{"fsync": "off", "timezone": "UTC", "server_encoding": "UTF8", "listen_addresses": "127.0.0.1"} {
		if got := query(t, s.Postgres.URL, "SHOW "+name); got != want {
			t.Errorf("Postgres: %s = %v, want %s", name, got, want)
		}
	}
	c := client(t, s.Redis.URL)
	for name, want := range map[string]string{"appendonly": "no", "save": "", "databases": "1024", "maxmemory-policy": "noeviction", "bind": "127.0.0.1"} {
		if got := setting(t, c, name); got != want {
			t.Errorf("Redis: %s = %q, want %q", name, got, want)
		}
	}
	if !s.Postgres.Private() || !s.Redis.Private() {
		t.Error("the servers say that they are not ours alone")
	}

	// Another start sweeps what dead processes left, and we are alive.
	sweep(temp)
	if got := query(t, s.Postgres.URL, "SELECT 1"); got != int32(1) {
		t.Errorf("after a sweep Postgres answers %v", got)
	}

	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if alive(postgres) || alive(redis) {
		t.Error("a process outlived Close")
	}
	left, err := filepath.Glob(filepath.Join(temp, throwAwayPattern+"*"))
	if err != nil || left != nil {
		t.Errorf("Close left %v, %v", left, err)
	}
	if err := s.Close(); err != nil {
		t.Errorf("a second Close: %v", err)
	}
}

func TestThrowAway_Durable(t *testing.T) {
	t.Parallel()
	s := start(t, Config{Durable: true})
	if got := query(t, s.Postgres.URL, "SHOW fsync"); got != "on" {
		t.Errorf("fsync = %v", got)
	}
	if got := setting(t, client(t, s.Redis.URL), "appendonly"); got != "yes" {
		t.Errorf("appendonly = %v", got)
	}
}

// TestKept goes through the runs of one folder, for initdb takes most of a first one.
func TestKept(t *testing.T) {
	t.Parallel()
	dir := openDir(t)
	s := start(t, Config{Dir: dir})
	t.Run("password", func(t *testing.T) { asksForPassword(t, s) })
	t.Run("second run", func(t *testing.T) { refusesSecondRun(t, dir, s) })
	t.Run("next run", func(t *testing.T) { nextRun(t, dir, s) })
	t.Run("broken settings", func(t *testing.T) { refusesBrokenSettings(t, dir) })
}

// nextRun closes a run, and has another one find what it kept.
func nextRun(t *testing.T, dir string, s *Stack) {
	if !strings.Contains(s.Postgres.URL, "/sendquota?") {
		t.Errorf("the database in %s is not called sendquota", s.Postgres.URL)
	}
	for _, name := range []string{"fsync", "full_page_writes", "synchronous_commit"} {
		if got := query(t, s.Postgres.URL, "SHOW "+name); got != "on" {
			t.Errorf("%s = %v", name, got)
		}
	}
	query(t, s.Postgres.URL, "CREATE TABLE kept AS SELECT 42 AS n")
	c := client(t, s.Redis.URL)
	if err := c.Set(t.Context(), "kept", 42, 0).Err(); err != nil {
		t.Fatal(err)
	}
	if got := setting(t, c, "appendonly"); got != "yes" {
		t.Errorf("appendonly = %q", got)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	s = start(t, Config{Dir: dir})
	if got := query(t, s.Postgres.URL, "SELECT n FROM kept"); got != int32(42) {
		t.Errorf("Postgres kept %v", got)
	}
	if got, err := client(t, s.Redis.URL).Get(t.Context(), "kept").Int(); got != 42 {
		t.Errorf("Redis kept %v, %v", got, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func asksForPassword(t *testing.T, s *Stack) {
	config, err := pgx.ParseConfig(s.Postgres.URL)
	if err != nil {
		t.Fatal(err)
	}
	config.Password = "wrong"
	if _, err := pgx.ConnectConfig(t.Context(), config); err == nil || !strings.Contains(err.Error(), "28P01") {
		t.Errorf("Postgres with a wrong password: %v", err)
	}
	o, err := redisclient.ParseURL(s.Redis.URL)
	if err != nil {
		t.Fatal(err)
	}
	o.Password = ""
	c := redisclient.Open(o)
	defer c.Close()
	if err := c.Ping(t.Context()).Err(); err == nil || !strings.Contains(err.Error(), "NOAUTH") {
		t.Errorf("Redis without a password: %v", err)
	}
}

func refusesSecondRun(t *testing.T, dir string, s *Stack) {
	_, err := Start(t.Context(), Config{Dir: dir, OwnProcess: true})
	if !errors.Is(err, ErrInUse) {
		t.Fatalf("error = %v", err)
	}
	for _, part := range []string{dir, fmt.Sprintf("process %d", os.Getpid())} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not name %q: %v", part, err)
		}
	}
	if got := query(t, s.Postgres.URL, "SELECT 1"); got != int32(1) {
		t.Errorf("the first run answers %v", got)
	}
}

// refusesBrokenSettings is for a folder whose last run has ended.
func refusesBrokenSettings(t *testing.T, dir string) {
	broken := filepath.Join(dir, "postgres", "data", "postgresql.conf")
	if err := os.WriteFile(broken, []byte("nonsense = on\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := StartPostgres(t.Context(), Config{Dir: dir})
	if err == nil || !strings.Contains(err.Error(), `unrecognized configuration parameter "nonsense"`) {
		t.Errorf("error = %v", err)
	}
}
