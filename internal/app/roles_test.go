package app

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/store/pg"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/apikey"
	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/config"
	"github.com/sendquota/sendquota/internal/devstack"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/testenv"
)

// as is a URL with another user.
func as(t *testing.T, of, user, password string) string {
	t.Helper()
	u, err := url.Parse(of)
	testenv.Check(t, err)
	u.User = url.UserPassword(user, password)
	return u.String()
}

// userOf is the user of a URL.
func userOf(t *testing.T, of string) string {
	t.Helper()
	u, err := url.Parse(of)
	testenv.Check(t, err)
	return u.User.Username()
}

// documentedRoles runs the statements of docs/databases.md with other names, and returns the URLs of both roles and of the user of Redis.
func documentedRoles(t *testing.T) (owner, role, redisURL string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/databases.md")
	testenv.Check(t, err)
	blocks := regexp.MustCompile("(?s)```(?:sql)?\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	if len(blocks) != 2 {
		t.Fatalf("%d blocks of statements", len(blocks))
	}
	name := "app_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	rename := strings.NewReplacer("sendquota", name)
	admin, adminRedis := testenv.Postgres(t), testenv.Redis(t)
	testenv.Check(t, devstack.Exec(t.Context(), admin, rename.Replace(blocks[0][1])))
	t.Cleanup(func() {
		drop := fmt.Sprintf(`DROP OWNED BY %[1]s, %[1]s_owner CASCADE; DROP ROLE %[1]s; DROP ROLE %[1]s_owner`, name)
		if err := devstack.Exec(context.Background(), admin, drop); err != nil {
			t.Error(err)
		}
	})
	var words []any
	for word := range strings.FieldsSeq(rename.Replace(blocks[1][1])) {
		words = append(words, word)
	}
	rdb := testenv.RedisClient(t, adminRedis)
	testenv.Check(t, rdb.Do(t.Context(), words...).Err())
	t.Cleanup(func() { _ = rdb.Do(context.Background(), "ACL", "DELUSER", name).Err() })
	return as(t, admin, name+"_owner", "OWNER_PASSWORD"), as(t, admin, name, "PASSWORD"), as(t, adminRedis, name, "PASSWORD")
}

// TestRoles_AsDocumented: with the roles of docs/databases.md the migrations and the programs work.
func TestRoles_AsDocumented(t *testing.T) {
	t.Parallel()
	owner, role, redisURL := documentedRoles(t)
	if applied, err := pg.Migrate(t.Context(), owner, pg.MigrateConfig{}); err != nil || len(applied) == 0 {
		t.Fatalf("applied %v, %v", applied, err)
	}
	// Check the role's own rights, without its membership in the owner's role. The membership is only for dropping partitions.
	member := fmt.Sprintf(`"%s_owner" %%s "%s"`, userOf(t, role), userOf(t, role))
	testenv.Check(t, devstack.Exec(t.Context(), testenv.Postgres(t), "REVOKE "+fmt.Sprintf(member, "FROM")))
	lacks := testenv.Query[string](t, role, `SELECT coalesce(string_agg(relname || ' ' || p, ', '), '') FROM pg_class, unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS p
		WHERE relkind IN ('r', 'p') AND relnamespace = current_schema()::regnamespace AND NOT has_table_privilege(pg_class.oid, p)`)
	if tables := testenv.Query[int](t, role, `SELECT count(*)::int FROM pg_class WHERE relkind IN ('r', 'p') AND relnamespace = current_schema()::regnamespace`); lacks != "" || tables < 40 {
		t.Errorf("of %d tables, the role lacks %s", tables, lacks)
	}
	testenv.Check(t, devstack.Exec(t.Context(), testenv.Postgres(t), "GRANT "+fmt.Sprintf(member, "TO")))
	cfg, err := config.Load([]string{"DATABASE_URL=" + role, "REDIS_URL=" + redisURL, config.AddrVariable + "=127.0.0.1:0"})
	testenv.Check(t, err)
	var log testenv.Buffer
	a, err := Open(t.Context(), cfg, slog.New(slog.NewTextHandler(&log, nil)))
	testenv.Check(t, err)
	a.warn(t.Context())
	ctx, stop := context.WithCancel(context.Background())
	ready, done := make(chan string, 1), make(chan error, 1)
	go func() { done <- a.RunBoth(ctx, ready) }()
	addr := <-ready
	defer func() {
		stop()
		testenv.Check(t, <-done)
		testenv.Check(t, a.Close())
		for _, refused := range []string{"permission denied", "may not", "NOPERM"} {
			if strings.Contains(log.String(), refused) {
				t.Errorf("%s: %s", refused, log.String())
			}
		}
	}()
	tenant, _, err := a.store.CreateTenant(t.Context(), "acme")
	testenv.Check(t, err)
	_, key, err := a.store.CreateKey(t.Context(), apikey.NewKey{Tenant: tenant, Scopes: push.Scopes})
	testenv.Check(t, err)
	ask := func(method, path, body string, want int) map[string]any {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, "http://"+addr+path, strings.NewReader(body))
		testenv.Check(t, err)
		req.Header.Set("Authorization", "Bearer "+key)
		res, err := http.DefaultClient.Do(req)
		testenv.Check(t, err)
		defer res.Body.Close()
		var is map[string]any
		if err := json.NewDecoder(res.Body).Decode(&is); err != nil || res.StatusCode != want {
			t.Fatalf("%s %s: %d, %v, %v", method, path, res.StatusCode, is, err)
		}
		return is
	}
	ask("PUT", "/v1/recipients/anna", `{"time_zone":"Asia/Tokyo"}`, 201)
	now := ask("POST", "/v1/pushes", `{"recipient":"anna","message":{"body":"now"}}`, 201)["id"].(string)
	later := ask("POST", "/v1/pushes", `{"recipient":"anna","message":{"body":"later"},"send_at":"`+time.Now().Add(40*24*time.Hour).UTC().Format(time.RFC3339)+`"}`, 201)["id"].(string)
	ask("POST", "/v1/pushes/"+later+"/cancel", "", 200)
	ask("POST", "/v1/limits/take", `{"key":"anna","limits":[{"algorithm":"sliding_log","limit":5,"per":"1m"}]}`, 200)
	ask("GET", "/v1/recipients/anna/quota", "", 200)
	await(t, "the push is sent", func() bool { return ask("GET", "/v1/pushes/"+now, "", 200)["status"] == "sent" })
	await(t, "all is well", func() bool { return ask("GET", "/readyz", "", 200)["status"] == "ready" })
	testenv.Check(t, devstack.Exec(t.Context(), role, `SELECT make_partitions('pushes', now() - interval '300 days', now() - interval '300 days')`))
	await(t, "an old partition is dropped", func() bool { // a worker may be about to, and goes first
		dropped, err := a.store.DropPartitions(t.Context(), booking.Kept{Pushes: 100 * 24 * time.Hour})
		testenv.Check(t, err)
		return len(dropped) > 0
	})
}
