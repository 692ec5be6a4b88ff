package devstack

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// connect opens a connection that lasts until the test ends.
func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	// The server may be gone by then.
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	return conn
}

// installed makes sure that this machine has both servers, as any start would.
func installed(t *testing.T) {
	t.Helper()
	closeIt(t, start(t, Config{}))
}

// bareMachine makes PATH an empty folder and returns search paths without programs.
func bareMachine(t *testing.T) (p *searchPaths, path string) {
	t.Helper()
	path = openDir(t)
	t.Setenv("PATH", path)
	return &searchPaths{
		policyFile: filepath.Join(path, "policy-rc.d"),
	}, path
}

// script makes a program of a few lines.
func script(t *testing.T, path, lines string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+lines+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
}

func TestFind_EnvironmentFirst(t *testing.T) {
	s, err := Start(t.Context(), Config{DatabaseURL: "postgres://elsewhere/db", RedisURL: "redis://elsewhere/3", Dir: "/nowhere"})
	if err != nil {
		t.Fatal(err)
	}
	defer closeIt(t, s)
	if s.Postgres.URL != "postgres://elsewhere/db" || s.Redis.URL != "redis://elsewhere/3" {
		t.Errorf("got %s and %s", s.Postgres.URL, s.Redis.URL)
	}
	if s.Postgres.Private() || s.Redis.Private() || s.Postgres.Pid() != 0 {
		t.Error("a named server is taken for ours")
	}
}

func TestFind_WithoutRedis(t *testing.T) {
	allOnly(t)
	installed(t)
	bin, err := usualPaths().postgresBin(0)
	if err != nil {
		t.Fatal(err)
	}
	paths, _ := bareMachine(t)
	paths.postgresFolders = []string{bin}

	var said strings.Builder
	s, err := Start(t.Context(), Config{searchPaths: paths, noInstall: true, AllowMiniredis: true, Progress: &said})
	if err != nil {
		t.Fatal(err)
	}
	defer closeIt(t, s)
	if err := client(t, s.Redis.URL).Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Error(err)
	}
	if !strings.Contains(said.String(), "WARNING") {
		t.Errorf("no warning: %s", said.String())
	}
	if got := query(t, s.Postgres.URL, "SELECT 1"); got != int32(1) {
		t.Errorf("Postgres answers %v", got)
	}

	_, err = Start(t.Context(), Config{searchPaths: paths, noInstall: true})
	if err == nil {
		t.Fatal("started without a Redis")
	}
	for _, part := range []string{"no Redis: none was named", "--redis-url redis://", "TEST_REDIS_URL=redis://", "no redis-server in PATH", "name servers that run elsewhere"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not mention %q: %v", part, err)
		}
	}
}

func TestFind_WithoutAnything(t *testing.T) {
	paths, _ := bareMachine(t)
	_, err := Start(t.Context(), Config{searchPaths: paths, noInstall: true})
	if err == nil {
		t.Fatal("started without any server")
	}
	for _, part := range []string{"no Postgres", "no Redis", "name servers that run elsewhere"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not mention %q: %v", part, err)
		}
	}
}

// A Redis that is there but does not start is no reason to give up, unless
// data is to be kept: then another server would look as if it were lost.
func TestFind_BrokenRedis(t *testing.T) {
	paths, path := bareMachine(t)
	script(t, filepath.Join(path, "redis-server"), "echo out of order; exit 1")
	c := Config{searchPaths: paths, AllowMiniredis: true}
	s, err := StartRedis(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	closeIt(t, s)
	c.Dir = openDir(t)
	if _, err := StartRedis(t.Context(), c); err == nil || !strings.Contains(err.Error(), "out of order") {
		t.Errorf("error = %v", err)
	}
}

func TestFind_OldPostgres(t *testing.T) {
	paths, path := bareMachine(t)
	for _, name := range []string{"postgres", "initdb"} {
		script(t, filepath.Join(path, name), "echo 'postgres (PostgreSQL) 14.9'")
	}
	_, err := paths.postgresBin(0)
	if err == nil || !strings.Contains(err.Error(), "has version 14") {
		t.Errorf("error = %v", err)
	}
	if dir, err := paths.postgresBin(14); dir != path {
		t.Errorf("for data of version 14: %q, %v", dir, err)
	}
}

func TestFind_HighestVersionFirst(t *testing.T) {
	paths, _ := bareMachine(t)
	root := openDir(t)
	for _, version := range []string{"9.6", "15", "16"} {
		for _, name := range []string{"postgres", "initdb"} {
			script(t, filepath.Join(root, version, "bin", name), "echo 'postgres (PostgreSQL) "+version+"'")
		}
	}
	paths.postgresFolders = []string{filepath.Join(root, "*", "bin")}
	if dir, err := paths.postgresBin(0); dir != filepath.Join(root, "16", "bin") {
		t.Errorf("found %q, %v", dir, err)
	}
}
