package app

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/sendquota/sendquota/internal/config"
	"github.com/sendquota/sendquota/internal/testenv"
)

func TestRedisOptions(t *testing.T) {
	for _, row := range []struct {
		url, user, password string
		addrs               int
		tls                 bool
	}{
		{"redis://h:1/3", "", "", 1, false},
		{"rediss://u:p@h", "u", "p", 1, true},
		{"redis://u:p@a:1,b:2, c:3", "u", "p", 3, false},
		{"a:1,redis://:p@b:2,c:3", "", "p", 3, false},
		{"rediss://:p@a:1,rediss://b:2", "", "p", 2, true},
		{"redis://u:p@a:1,redis://v:q@b:2", "u", "p", 2, false},
	} {
		o, err := redisOptions(row.url, 0)
		if err != nil {
			t.Errorf("%s: %v", row.url, err)
			continue
		}
		if o.Username != row.user || o.Password != row.password || len(o.Addrs) != row.addrs || (o.TLSConfig != nil) != row.tls {
			t.Errorf("%s: %+v", row.url, o)
		}
	}
}

// TestRedisOptions_BadURL: the error says which form is valid, and quotes nothing of the URL.
func TestRedisOptions_BadURL(t *testing.T) {
	for _, url := range []string{"http://topsecret@h", "redis://:topsecret@h/one", "redis://:top%zzsecret@h", "a:1,redis://h?topsecret=1"} {
		_, err := openRedis(url, 0)
		if err == nil || !strings.Contains(err.Error(), "must look like redis://[user:password@]host:port[/index]") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// TestRedis_RefusesConnections: the client fails at once, and complains to our log alone.
func TestRedis_RefusesConnections(t *testing.T) {
	cfg, err := config.Load([]string{"DATABASE_URL=postgres://nobody@127.0.0.1:1/nothing", "REDIS_URL=redis://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	var text testenv.Buffer
	a, err := Open(t.Context(), cfg, slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelDebug})))
	if err != nil {
		t.Fatal(err)
	}
	if err := a.queue.Works(t.Context()); err == nil {
		t.Error("something answers")
	}
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	if got := text.String(); !strings.Contains(got, `level=DEBUG msg="redis: `) || !strings.Contains(got, "failed to dial after 1 attempts") {
		t.Errorf("logged %q", got)
	}
}
