package app

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/config"
	"github.com/sendquota/sendquota/internal/health"
	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/internal/testenv"
)

// TestCheckServers: all deficits of both servers are reported at once, one on each line; suitable servers have none.
func TestCheckServers(t *testing.T) {
	t.Parallel()
	server := testenv.OwnRedis(t)
	check := func(database, redis string, want ...string) {
		t.Helper()
		cfg, err := config.Load([]string{"DATABASE_URL=" + database, "REDIS_URL=" + redis})
		testenv.Check(t, err)
		err = CheckServers(t.Context(), cfg)
		if len(want) == 0 && err != nil || len(want) > 0 && (err == nil || strings.Count(err.Error(), "\n") != len(want)-1) {
			t.Errorf("%v, want %q", err, want)
		}
		if err != nil && strings.Contains(err.Error(), "hush") {
			t.Errorf("it tells a password: %v", err)
		}
		for _, line := range want {
			if err == nil || !strings.Contains(err.Error(), line) {
				t.Errorf("%v, want it to say %q", err, line)
			}
		}
	}
	database := testenv.Postgres(t)
	check(database, server.URL)
	testenv.Exec(t, database, `DELETE FROM sendquota_version WHERE version_id = 1`)
	testenv.Check(t, testenv.RedisClient(t, server.URL).ConfigSet(t.Context(), "maxmemory-policy", "allkeys-lru").Err())
	check(database, server.URL, "Postgres: the database is not_migrated", "Redis: Redis has the maxmemory-policy allkeys-lru")
	check("postgres://nobody:hush@127.0.0.1:1/none", "redis://:hush@127.0.0.1:1", "Postgres: connect to Postgres", "Redis: queue: ")
	own := testenv.OwnPostgres(t, "max_locks_per_transaction=64", "max_connections=40").URL
	testenv.Exec(t, own, `DELETE FROM sendquota_version WHERE version_id = 1`)
	check(own, server.URL, "Postgres: the database is not_migrated", "max_locks_per_transaction = 64", "allkeys-lru")
}

// TestReadyz_Suits: with unsuitable servers that work, a program is degraded; the log and /readyz list their deficits.
func TestReadyz_Suits(t *testing.T) {
	t.Parallel()
	server := testenv.OwnRedis(t)
	testenv.Check(t, testenv.RedisClient(t, server.URL).ConfigSet(t.Context(), "maxmemory-policy", "allkeys-lru").Err())
	cfg, err := config.Load([]string{"DATABASE_URL=" + testenv.OwnPostgres(t, "max_locks_per_transaction=64").URL, "REDIS_URL=" + server.URL})
	testenv.Check(t, err)
	log := new(testenv.Buffer)
	a, err := Open(t.Context(), cfg, slog.New(slog.NewTextHandler(log, nil)))
	testenv.Check(t, err)
	testenv.Finally(t, a.Close)
	testenv.Until(t, 100*time.Millisecond, "/readyz lists the deficits of both servers", func() bool { // on a busy machine they may not answer in time
		r := a.health.Check(t.Context())
		return r.Status == health.Degraded && r.Postgres == "few_locks" && r.Redis == "evicts" &&
			strings.Contains(r.Detail, "max_locks_per_transaction = 64") && strings.Contains(r.Detail, "allkeys-lru")
	})
	testenv.Until(t, 100*time.Millisecond, "the log of the start tells it", func() bool {
		a.warn(t.Context())
		text := log.String()
		return strings.Contains(text, "Postgres has unsuitable settings") && strings.Contains(text, "max_locks_per_transaction = 64") &&
			strings.Contains(text, "Redis has unsuitable settings") && strings.Contains(text, "allkeys-lru")
	})
}

// TestCheckServers_Offered: `config check --connect` reports the tenants of offered_to that do not exist.
func TestCheckServers_Offered(t *testing.T) {
	t.Parallel()
	database := testenv.Postgres(t)
	st, err := store.Open(t.Context(), database, store.Config{})
	testenv.Check(t, err)
	defer st.Close()
	_, _, err = st.CreateTenant(t.Context(), "acme")
	testenv.Check(t, err)
	for offered, want := range map[string]string{"[acme]": "", "[acme, acmee]": `channels.sms.offered_to: there is no tenant "acmee"; to create it: sendquota tenants create "acmee"`} {
		file := filepath.Join(t.TempDir(), "sendquota.yaml")
		testenv.Check(t, os.WriteFile(file, []byte("channels: {log: {type: log}, sms: {type: log, offered_to: "+offered+"}}"), 0o600))
		cfg, err := config.Load([]string{"DATABASE_URL=" + database, "REDIS_URL=" + testenv.Redis(t), "SENDQUOTA_CONFIG=" + file})
		testenv.Check(t, err)
		if err := CheckServers(t.Context(), cfg); want == "" && err != nil || want != "" && (err == nil || err.Error() != want) {
			t.Errorf("%s: %v, want %q", offered, err, want)
		}
	}
}
