package testenv

import (
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/devstack"
)

func TestMain(m *testing.M) {
	for _, name := range services {
		_ = os.Setenv(name, "postgres://production")
	}
	Main(m)
}

// services are the variables that name the servers of services, as a shell of production has them.
var services = []string{"DATABASE_URL", "REDIS_URL"}

// TestMain_IgnoresServices: what a test runs does not find the servers of services.
func TestMain_IgnoresServices(t *testing.T) {
	t.Parallel()
	for _, name := range services {
		if is, set := os.LookupEnv(name); set {
			t.Errorf("%s is %s in a test", name, is)
		}
	}
}

const testDatabases = "SELECT count(*) FROM pg_database WHERE datname LIKE 'sendquota_test_%'"

func TestPostgres_DatabasePerTest(t *testing.T) {
	for i := range 3 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			u := Postgres(t)
			// The table comes with the migrations and is empty in every copy.
			if n := Query[int](t, u, "SELECT count(*) FROM tenants"); n != 0 {
				t.Errorf("a new database has %d tenants", n)
			}
			Exec(t, u, "INSERT INTO tenants (id, name) VALUES (gen_random_uuid(), 'one')")
		})
	}
}

func TestPostgres_DropsConnectedDatabase(t *testing.T) {
	observer, dropped := Postgres(t), ""
	t.Run("user", func(t *testing.T) {
		conn, err := pgx.Connect(t.Context(), Postgres(t)) // and never closes it
		if err != nil {
			t.Fatal(err)
		}
		dropped = conn.Config().Database
	})
	if n := Query[int](t, observer, `SELECT count(*) FROM pg_database WHERE datname = $1`, dropped); n != 0 {
		t.Errorf("the database %q is still there", dropped)
	}
}

// TestRedis_IndexPerTest has more turns than there are indexes: each comes round again, and is empty.
func TestRedis_IndexPerTest(t *testing.T) {
	theirs, ours := elsewhere(t)
	if a, b := ours.Redis(t), ours.Redis(t); a == b {
		t.Errorf("one index twice: %s", a)
	}
	const left = 3
	if err := RedisClient(t, theirs.Redis.URL).LTrim(t.Context(), freeIndexes, 0, left-1).Err(); err != nil {
		t.Fatal(err)
	}
	for range 2 * left {
		t.Run("", func(t *testing.T) {
			u := ours.Redis(t)
			if got := RedisClient(t, u).Incr(t.Context(), "n").Val(); got != 1 {
				t.Fatalf("INCR in %s answers %d", u, got)
			}
		})
	}
}

func TestOwnServers_Killed(t *testing.T) {
	t.Parallel()
	for _, s := range []*devstack.Server{OwnRedis(t), OwnPostgres(t)} {
		if err := s.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := s.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		if s.Name == "postgres" {
			Query[int](t, s.URL, "SELECT count(*) FROM pushes")
		}
	}
}

// elsewhere starts servers, and returns what a test binary makes of an environment
// that names them.
func elsewhere(t *testing.T) (theirs *devstack.Stack, ours *Servers) {
	t.Helper()
	theirs, err := devstack.Start(t.Context(), devstack.Config{OwnProcess: true, Progress: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := theirs.Close(); err != nil {
			t.Error(err)
		}
	})
	return theirs, NewServers(devstack.Config{DatabaseURL: theirs.Postgres.URL, RedisURL: theirs.Redis.URL, Progress: t.Output()})
}

func TestEnvironment_ForeignData(t *testing.T) {
	theirs, ours := elsewhere(t)
	cache, theirIndex := RedisClient(t, theirs.Redis.URL), strings.TrimSuffix(theirs.Redis.URL, "/0")+"/1" // the first that would be handed out
	Exec(t, theirs.Postgres.URL, "CREATE TABLE tenants AS SELECT 42 AS n")
	if err := RedisClient(t, theirIndex).Set(t.Context(), "theirs", 42, 0).Err(); err != nil {
		t.Fatal(err)
	}

	t.Run("user", func(t *testing.T) {
		u, index := ours.Postgres(t), ours.Redis(t)
		if host(t, u) != host(t, theirs.Postgres.URL) || host(t, index) != host(t, theirs.Redis.URL) {
			t.Errorf("%s and %s are not on the servers of the environment", u, index)
		}
		if n := Query[int](t, u, "SELECT count(*) FROM tenants"); n != 0 {
			t.Errorf("a new database has %d tenants", n)
		}
		if got := RedisClient(t, index).Exists(t.Context(), "theirs").Val(); got != 0 {
			t.Error("the index is not our own")
		}
	})
	if err := ours.Close(); err != nil {
		t.Fatal(err)
	}

	if n := Query[int](t, theirs.Postgres.URL, testDatabases); n != 0 {
		t.Errorf("%d databases are left", n)
	}
	if n := Query[int](t, theirs.Postgres.URL, "SELECT n FROM tenants"); n != 42 {
		t.Errorf("their table has %d", n)
	}
	space, err := cache.Info(t.Context(), "keyspace").Result()
	if err != nil || strings.Count(space, "keys=") != 2 {
		t.Errorf("keys are left in indexes besides 0 and theirs: %s, %v", space, err)
	}
	if got := RedisClient(t, theirIndex).Get(t.Context(), "theirs").Val(); got != "42" {
		t.Errorf("their key is %q", got)
	}
}

// TestEnvironment_OneProcessAfterAnother: a second process uses the template and the list of indexes that the first one made.
func TestEnvironment_OneProcessAfterAnother(t *testing.T) {
	theirs, first := elsewhere(t)
	second := NewServers(devstack.Config{DatabaseURL: theirs.Postgres.URL, RedisURL: theirs.Redis.URL, Progress: t.Output()})
	t.Run("user", func(t *testing.T) {
		if a, b := first.Redis(t), second.Redis(t); a == b {
			t.Errorf("two processes share the index %s", a)
		}
		if a, b := first.SharedPostgres(t), first.SharedPostgres(t); a != b {
			t.Errorf("one process has the shared databases %s and %s", a, b)
		}
		if a, b := first.SharedPostgres(t), second.SharedPostgres(t); a == b {
			t.Errorf("two processes share the database %s", a)
		}
	})
	for _, s := range []*Servers{first, second} {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if n := Query[int](t, theirs.Postgres.URL, testDatabases); n != 0 {
		t.Errorf("%d databases are left", n)
	}
	if n := Query[int](t, theirs.Postgres.URL, "SELECT count(*) FROM pg_database WHERE datname LIKE 'sendquota_template_%'"); n != 1 {
		t.Errorf("%d templates", n)
	}
}

func TestPostgres_DatabaseURL(t *testing.T) {
	t.Parallel()
	for server, want := range map[string]string{
		"postgres://u:p@h:5432/theirs?sslmode=disable": "postgres://u:p@h:5432/ours?sslmode=disable",
		"postgres:///theirs?host=/run/postgresql":      "postgres:///ours?host=/run/postgresql",
		"host=h user=u dbname=theirs":                  "host=h user=u dbname=theirs dbname=ours",
	} {
		got, err := withDatabase(server, "ours")
		if err != nil || got != want {
			t.Errorf("%s: %s, %v", server, got, err)
		}
		config, err := pgx.ParseConfig(got)
		if err != nil || config.Database != "ours" {
			t.Errorf("%s names the database %q, %v", got, config.Database, err)
		}
	}
}

func TestEnvironment_Failure(t *testing.T) {
	ours := NewServers(devstack.Config{DatabaseURL: "postgres://nobody@127.0.0.1:1/none?sslmode=disable"})
	_, first := ours.postgres()
	_, second := ours.postgres()
	if first == nil || first != second {
		t.Errorf("first %v, second %v", first, second)
	}
	if err := ours.Close(); err != nil {
		t.Error(err)
	}
}

func host(t *testing.T, raw string) string {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}

func BenchmarkPostgres(b *testing.B) {
	Postgres(b)
	for b.Loop() {
		p, err := servers.postgres()
		if err != nil {
			b.Fatal(err)
		}
		name, _, err := p.create(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := p.drop(name); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

// TestStores_Empty: a test finds nothing of those before it, but the store, and what the migrations made.
func TestStores_Empty(t *testing.T) {
	t.Parallel()
	var stores Stores
	var first string
	count := func(url, table string) int { return Query[int](t, url, "SELECT count(*) FROM "+table) }
	t.Run("first", func(t *testing.T) {
		url, st := stores.Take(t)
		_, _, err := st.CreateTenant(t.Context(), "acme")
		Check(t, err)
		Exec(t, url, `INSERT INTO schedules (id, tenant_id, name, cron, time_zone, push, catch_up, paused, began_at, done_at, created_at, updated_at)
			SELECT gen_random_uuid(), id, '', '@daily', 'UTC', '{}', 'skip', false, now(), now(), now(), now() FROM tenants`)
		Exec(t, url, `UPDATE lanes SET owner = gen_random_uuid(), owned_until = 'infinity'`)
		if other, _ := stores.Take(t); other == url {
			t.Error("two tests at a time have one database")
		}
		first = url
	})
	url, st := stores.Take(t)
	other, _ := stores.Take(t)
	if url != first && other != first {
		t.Error("the database of the first is not used again")
	}
	if n := count(first, "tenants") + count(first, "schedules") + count(first, "lanes WHERE owner IS NOT NULL"); n > 0 || count(first, "lanes") != 256 {
		t.Errorf("%d rows are left", n)
	}
	_, _, err := st.CreateTenant(t.Context(), "acme")
	Check(t, err)
}
