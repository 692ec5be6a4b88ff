package devstack

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestServer_RestartAfterKill(t *testing.T) {
	allOnly(t)
	t.Parallel()
	s := start(t, Config{})
	query(t, s.Postgres.URL, "CREATE TABLE kept AS SELECT 42 AS n")
	for _, server := range []*Server{s.Postgres, s.Redis} {
		before := server.Pid()
		if err := server.Kill(); err != nil {
			t.Fatal(err)
		}
		if alive(before) || server.Pid() != 0 {
			t.Errorf("%s: process %d lives after Kill, Pid() = %d", server.Name, before, server.Pid())
		}
		if err := server.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		if after := server.Pid(); after == 0 || after == before {
			t.Errorf("%s: process %d after Restart, %d before", server.Name, after, before)
		}
	}
	if got := query(t, s.Postgres.URL, "SELECT n FROM kept"); got != int32(42) {
		t.Errorf("Postgres kept %v", got)
	}
	if err := client(t, s.Redis.URL).Ping(t.Context()).Err(); err != nil {
		t.Error(err)
	}
}

func TestServer_RestartWhileAlive(t *testing.T) {
	allOnly(t)
	t.Parallel()
	s := start(t, Config{Durable: true})
	c := client(t, s.Redis.URL)
	if err := c.Set(t.Context(), "kept", 42, 0).Err(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Postgres.Restart(t.Context()), s.Redis.Restart(t.Context())); err != nil {
		t.Fatal(err)
	}
	if got, err := client(t, s.Redis.URL).Get(t.Context(), "kept").Int(); got != 42 {
		t.Errorf("Redis kept %v, %v", got, err)
	}
}

// TestServer_PauseAndResume checks that a paused server does not answer on new or old connections, and continues after
// Resume.
func TestServer_PauseAndResume(t *testing.T) {
	t.Parallel()
	s := start(t, Config{})
	answers := map[*Server]func(context.Context) error{
		s.Redis: func(ctx context.Context) error { return redisAnswers(ctx, s.Redis.URL, s.Redis.Pid()) },
		s.Postgres: func(ctx context.Context) error {
			_, err := tryQuery(ctx, s.Postgres.URL, "SELECT 1")
			return err
		},
	}
	for server, ask := range answers {
		if err := server.Pause(); err != nil {
			t.Fatal(err)
		}
		// This duration is no wait for luck: a server that answers does so in
		// a fraction of it, and then the test fails.
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		err := ask(ctx)
		cancel()
		if err == nil {
			t.Errorf("%s answers while it is paused", server.Name)
		}
		if err := server.Resume(); err != nil {
			t.Fatal(err)
		}
		if err := ask(t.Context()); err != nil {
			t.Errorf("%s after Resume: %v", server.Name, err)
		}
	}
}

// Open connections of Postgres are processes of their own.
func TestServer_PauseOpenConnections(t *testing.T) {
	t.Parallel()
	s := start(t, Config{})
	conn := connect(t, s.Postgres.URL)
	if err := s.Postgres.Pause(); err != nil {
		t.Fatal(err)
	}
	answered := make(chan error, 1)
	go func() { answered <- conn.Ping(context.Background()) }()
	select {
	case err := <-answered:
		t.Errorf("an open connection answers while Postgres is paused: %v", err)
	case <-time.After(300 * time.Millisecond): // many times what an answer takes: no fact says that none will come
	}
	if err := s.Postgres.Resume(); err != nil {
		t.Fatal(err)
	}
	if err := <-answered; err != nil {
		t.Errorf("after Resume: %v", err)
	}
}

func TestServer_CloseAfterPauseAndKill(t *testing.T) {
	allOnly(t)
	t.Parallel()
	for name, harm := range map[string]func(*Server) error{"pause": (*Server).Pause, "kill": (*Server).Kill} {
		t.Run(name, func(t *testing.T) {
			s := start(t, Config{})
			connect(t, s.Postgres.URL) // a process that Postgres must wait for
			if err := errors.Join(harm(s.Postgres), harm(s.Redis)); err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestServer_Foreign(t *testing.T) {
	t.Parallel()
	s, err := StartRedis(t.Context(), Config{RedisURL: "redis://elsewhere:6379/3"})
	if err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"kill": s.Kill(), "pause": s.Pause(), "resume": s.Resume(), "restart": s.Restart(t.Context()),
	} {
		if !errors.Is(err, errNotOurs) {
			t.Errorf("%s: %v", name, err)
		}
	}
	closeIt(t, s)
}
