package app

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/sendquota/sendquota/internal/config"
	"github.com/sendquota/sendquota/internal/redisclient"
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
		{"rediss-cluster://u:p@a", "u", "p", 1, true},
		{"redis-sentinel://u:p@a,b,c/3?master=m", "u", "p", 3, false},
	} {
		o, err := redisOptions(config.Secret(row.url), 0)
		if err != nil {
			t.Errorf("%s: %v", row.url, err)
			continue
		}
		if o.Username != row.user || o.Password != row.password || len(o.Addrs) != row.addrs || (o.TLS != nil) != row.tls {
			t.Errorf("%s: %+v", row.url, o)
		}
	}
}

// TestRedisClients_Sizes: the queue has the number of connections of the settings, and each other part the same, but at most 16.
func TestRedisClients_Sizes(t *testing.T) {
	for connections, want := range map[int][2]int{0: {64, 16}, 8: {8, 8}, 10_000: {10_000, 16}} {
		c, err := openRedis("redis://127.0.0.1:1", connections)
		if err != nil {
			t.Fatal(err)
		}
		for i, part := range []redisclient.Client{c.queue, c.cache, c.callerLimits, c.tenantLimits, c.pace} {
			if got := part.(*redis.Client).Options().PoolSize; got != want[min(i, 1)] {
				t.Errorf("%d: part %d has %d", connections, i, got)
			}
		}
		if err := c.close(); err != nil {
			t.Error(err)
		}
	}
}

// TestRedisClients_Kinds: every form of REDIS_URL makes the client that it needs, for every part.
func TestRedisClients_Kinds(t *testing.T) {
	for url, want := range map[config.Secret]string{
		"redis://127.0.0.1:1":                         "*redis.Client",
		"127.0.0.1:1,127.0.0.1:2":                     "*redis.ClusterClient",
		"redis-cluster://127.0.0.1:1":                 "*redis.ClusterClient",
		"redis-sentinel://127.0.0.1:1?master=primary": "*redis.Client",
	} {
		c, err := openRedis(url, 0)
		if err != nil {
			t.Fatalf("%s: %v", string(url), err)
		}
		for _, part := range []redisclient.Client{c.queue, c.cache, c.callerLimits, c.tenantLimits, c.pace} {
			if got := fmt.Sprintf("%T", part); got != want {
				t.Errorf("%s: %s", string(url), got)
			}
		}
		if err := c.close(); err != nil {
			t.Error(err)
		}
	}
}

// TestRedisTLS: a cluster's nodes have a certificate for the host that REDIS_URL names; sentinels, and the servers that
// they name, have one for their own address.
func TestRedisTLS(t *testing.T) {
	for url, want := range map[config.Secret]string{
		"rediss://h:1": "h", "rediss-cluster://h": "h", "rediss://h:1,rediss://i:1": "h", "rediss-sentinel://h?master=m": "",
	} {
		o, err := redisOptions(url, 0)
		if err != nil || o.TLS == nil || o.TLS.ServerName != want || o.TLS.InsecureSkipVerify {
			t.Errorf("%s: %+v, %v", string(url), o, err)
		}
	}
	if o, err := redisOptions("rediss-sentinel://h?master=m&skip_verify=true", 0); err != nil || !o.TLS.InsecureSkipVerify {
		t.Errorf("skip_verify: %+v, %v", o, err)
	}
}

// TestRedisOptions_BadURL: the error shows the valid form, and quotes nothing of the URL.
func TestRedisOptions_BadURL(t *testing.T) {
	for url, want := range map[config.Secret]string{
		"http://topsecret@h":                        "REDIS_URL: must be redis://[user:password@]host:port[/number]",
		"redis://:topsecret@h/one":                  "REDIS_URL: must be redis://[user:password@]host:port[/number]",
		"redis://:top%zzsecret@h":                   "REDIS_URL: must be redis://[user:password@]host:port[/number]",
		"a:1,redis://h?topsecret=1":                 "REDIS_URL: must be host:port for every cluster node",
		"redis-sentinel://:topsecret@h?sentinel=no": "REDIS_URL: has an option that is not one of master, sentinel_username",
	} {
		_, err := openRedis(url, 0)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", string(url), err)
		}
	}
}

// TestRedis_RefusesConnections: the client fails at once, and logs to our log only.
func TestRedis_RefusesConnections(t *testing.T) {
	cfg, err := config.Load([]string{"DATABASE_URL=postgres://user@127.0.0.1:1/nothing", "REDIS_URL=redis://127.0.0.1:1"})
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
