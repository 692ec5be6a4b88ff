package pg_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/internal/store/pg"
	"github.com/sendquota/sendquota/internal/store/storetest"
	"github.com/sendquota/sendquota/internal/testenv"
)

// lines counts the lines of a log that contain all of some texts.
func lines(log *testenv.Buffer, parts ...string) (n int) {
	for line := range strings.Lines(log.String()) {
		if !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(line, part) }) {
			n++
		}
	}
	return n
}

// changedURL returns the URL of a database with a change.
func changedURL(t *testing.T, of string, change func(u *url.URL, q url.Values)) string {
	t.Helper()
	u, err := url.Parse(of)
	testenv.Check(t, err)
	q := u.Query()
	change(u, q)
	u.RawQuery = strings.ReplaceAll(q.Encode(), "+", "%20")
	return u.String()
}

// emptyDatabase creates a database without tables, and returns its URL and a connection to it.
func emptyDatabase(t *testing.T, options string) (string, *pgx.Conn) {
	t.Helper()
	direct := testenv.Postgres(t)
	admin, name := storetest.Connect(t, direct), "empty_"+strings.ReplaceAll(uuid.NewString(), "-", "")
	_, err := admin.Exec(t.Context(), `CREATE DATABASE `+name+` TEMPLATE template0 `+options)
	testenv.Check(t, err)
	t.Cleanup(func() { _, _ = admin.Exec(context.Background(), `DROP DATABASE `+name+` WITH (FORCE)`) })
	u := changedURL(t, direct, func(u *url.URL, _ url.Values) { u.Path = "/" + name })
	return u, storetest.Connect(t, u)
}

// live opens a store as a role, and runs the whole life of pushes on it.
func live(t *testing.T, service string, db *pgx.Conn, recipient string) *store.Store {
	t.Helper()
	st := storetest.OpenURL(t, service, store.Config{})
	if got := stateOf(t, st); got != "ok" {
		t.Fatalf("it is %s", got)
	}
	tenant, _, err := st.CreateTenant(t.Context(), uuid.NewString())
	testenv.Check(t, err)
	p := &pooled{bundle: &bundle{&storetest.Bundle{Store: st, URL: service, DB: db, Watch: db, TenantID: tenant}}}
	if err := p.life(t.Context(), recipient, func(push.Push) {}); err != nil {
		t.Error(err)
	}
	return st
}

// TestReads_TargetSessionAttrs checks that a URL that asks for a writable server serves reads, too, and that reads
// still cannot write.
func TestReads_TargetSessionAttrs(t *testing.T) {
	t.Parallel()
	for _, attrs := range []string{"any", "read-write", "primary", "prefer-standby"} {
		b := setupAlone(t)
		st := live(t, changedURL(t, b.URL, func(_ *url.URL, q url.Values) { q.Set("target_session_attrs", attrs) }), b.DB, "anna")
		var only bool
		if err := st.ReadPool.QueryRow(t.Context(), `SELECT current_setting('transaction_read_only')::bool`).Scan(&only); err != nil || !only {
			t.Errorf("%q: reads could write: %v", attrs, err)
		}
	}
}

// TestReady_SaysWhy checks that a database that refuses connections is unreachable, with a reason that is logged once.
func TestReady_SaysWhy(t *testing.T) {
	t.Parallel()
	direct := setupAlone(t).URL
	for name, row := range map[string]struct{ url, why string }{
		"nothing listens": {"postgres://a-role@127.0.0.1:1/a-database", "connection refused"},
		"a standby":       {changedURL(t, direct, func(_ *url.URL, q url.Values) { q.Set("target_session_attrs", "standby") }), "target_session_attrs"},
		"no database":     {changedURL(t, direct, func(u *url.URL, _ url.Values) { u.Path = "/there-is-none" }), "3D000"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log testenv.Buffer
			st := storetest.OpenURL(t, row.url, pg.Config{MaxConns: 1, Log: slog.New(slog.NewTextHandler(&log, nil))})
			for range 3 {
				err := st.Ready(t.Context())
				var unready *pg.UnreadyError
				if !errors.As(err, &unready) || unready.State() != "unreachable" || !strings.Contains(unready.Detail(), row.why) || !errors.Is(err, push.ErrUnavailable) {
					t.Errorf("%v, want it to say %s", err, row.why)
				} else if strings.Contains(unready.Detail(), "127.0.0.1") || strings.Contains(unready.Detail(), "there-is-none") {
					t.Errorf("the public detail has an address: %s", unready.Detail())
				}
			}
			if n := lines(&log, "cannot connect to Postgres", "pool=changes", row.why); n != 1 {
				t.Errorf("it is logged %d times: %s", n, log.String())
			}
		})
	}
}

// TestReady_Reads checks that a database that can be written but not read is not ready until it can be read, and that
// the log has both once.
func TestReady_Reads(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	role := "limited_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	b.Exec(t, `CREATE ROLE `+role+` LOGIN PASSWORD 'x'; GRANT ALL ON ALL TABLES IN SCHEMA public TO `+role)
	t.Cleanup(func() { _, _ = b.DB.Exec(context.Background(), `DROP OWNED BY `+role+`; DROP ROLE `+role) })
	var log testenv.Buffer
	st := storetest.OpenURL(t, changedURL(t, b.URL, func(u *url.URL, _ url.Values) { u.User = url.UserPassword(role, "x") }),
		pg.Config{MaxConns: 1, ReadConns: 1, Log: slog.New(slog.NewTextHandler(&log, nil))})
	_, err := st.Tenants(t.Context()) // opens its one connection for changes
	testenv.Check(t, err)
	b.Exec(t, `ALTER ROLE `+role+` CONNECTION LIMIT 1`)
	for range 3 {
		if err := st.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "53300") {
			t.Errorf("it is ready without reads: %v", err)
		}
	}
	b.Exec(t, `ALTER ROLE `+role+` CONNECTION LIMIT -1`)
	if err := st.Ready(t.Context()); err != nil {
		t.Error(err)
	}
	if n := lines(&log, "cannot connect to Postgres", "pool=reads"); n != 1 {
		t.Errorf("the failure is logged %d times", n)
	}
	if n := lines(&log, "connected to Postgres again", "pool=reads"); n != 1 {
		t.Errorf("the recovery is logged %d times", n)
	}
}

// TestStore_AnyNames checks that a role and a schema may have any name.
func TestStore_AnyNames(t *testing.T) {
	t.Parallel()
	direct, db := emptyDatabase(t, "")
	owner, role := "sa-push@shop.iam "+uuid.NewString(), `App "`+uuid.NewString()
	quoted := func(name string) string { return pgx.Identifier{name}.Sanitize() }
	exec := func(sql string) {
		t.Helper()
		_, err := db.Exec(t.Context(), sql)
		testenv.Check(t, err)
	}
	as := func(name string) string {
		return changedURL(t, direct, func(u *url.URL, q url.Values) {
			u.User = url.UserPassword(name, "x")
			q.Set("search_path", `"My-Schema"`)
		})
	}
	exec(fmt.Sprintf(`CREATE ROLE %s LOGIN PASSWORD 'x'; CREATE ROLE %s LOGIN PASSWORD 'x'; CREATE SCHEMA "My-Schema" AUTHORIZATION %[1]s`, quoted(owner), quoted(role)))
	t.Cleanup(func() {
		for _, name := range []string{role, owner} {
			_, _ = db.Exec(context.Background(), `DROP OWNED BY `+quoted(name)+` CASCADE; DROP ROLE `+quoted(name))
		}
	})
	if _, err := pg.Migrate(t.Context(), as(owner), pg.MigrateConfig{}); err != nil {
		t.Fatal(err)
	}
	exec(fmt.Sprintf(`GRANT USAGE ON SCHEMA "My-Schema" TO %[1]s; GRANT ALL ON ALL TABLES IN SCHEMA "My-Schema" TO %[1]s; GRANT ALL ON ALL SEQUENCES IN SCHEMA "My-Schema" TO %[1]s`, quoted(role)))
	for _, name := range []string{owner, role} {
		st := live(t, as(name), db, "anna "+name)
		if _, err := st.MakePartitions(t.Context()); err != nil {
			t.Errorf("%s makes partitions: %v", name, err)
		}
		if _, err := st.DropPartitions(t.Context(), storetest.Kept); err != nil {
			t.Errorf("%s drops partitions: %v", name, err)
		}
	}
}

// TestStore_OtherDefaults checks that a database's defaults for strings and encodings change nothing.
func TestStore_OtherDefaults(t *testing.T) {
	t.Parallel()
	direct, db := emptyDatabase(t, "")
	name := storetest.Ask[string](t, db, `SELECT current_database()::text`)
	_, err := db.Exec(t.Context(), `ALTER DATABASE `+name+` SET standard_conforming_strings = off; ALTER DATABASE `+name+` SET client_encoding = 'LATIN1'`)
	testenv.Check(t, err)
	if _, err := pg.Migrate(t.Context(), direct, pg.MigrateConfig{}); err != nil {
		t.Fatal(err)
	}
	live(t, direct, storetest.Connect(t, direct+"&client_encoding=UTF8&standard_conforming_strings=on"), `ж\n日本`)
}

// TestMigrate_Encoding checks that the migration and programs refuse a database that cannot store every text.
func TestMigrate_Encoding(t *testing.T) {
	t.Parallel()
	for _, encoding := range []string{"SQL_ASCII", "LATIN1"} {
		direct, db := emptyDatabase(t, `ENCODING '`+encoding+`' LC_COLLATE 'C' LC_CTYPE 'C'`)
		say := "its encoding is " + encoding + ", and sendquota needs UTF8"
		if applied, err := pg.Migrate(t.Context(), direct, pg.MigrateConfig{}); err == nil || !strings.Contains(err.Error(), say) || len(applied) > 0 {
			t.Errorf("%s: applied %v, %v", encoding, applied, err)
		}
		if n := storetest.Ask[int](t, db, `SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace`); n > 0 {
			t.Errorf("%s: %d tables were made", encoding, n)
		}
		st := storetest.OpenURL(t, direct, pg.Config{MaxConns: 1})
		if err := st.Ready(t.Context()); stateOf(t, st) != "wrong_encoding" || !strings.Contains(err.Error(), say) {
			t.Errorf("%s: ready: %v", encoding, err)
		}
		if _, err := st.Tenants(t.Context()); !errors.Is(err, push.ErrUnavailable) {
			t.Errorf("%s: %v", encoding, err)
		}
	}
}

// TestMigrate_ForeignNames checks that tables of other applications are ignored, unless they have our names: then the
// migration does nothing.
func TestMigrate_ForeignNames(t *testing.T) {
	t.Parallel()
	direct, db := emptyDatabase(t, "")
	exec := func(sql string) {
		t.Helper()
		_, err := db.Exec(t.Context(), sql)
		testenv.Check(t, err)
	}
	exec(`CREATE TABLE goose_db_version (id serial PRIMARY KEY, version_id bigint NOT NULL, is_applied bool NOT NULL, tstamp timestamp DEFAULT now()); INSERT INTO goose_db_version (version_id, is_applied) VALUES (0, true), (1, true), (99, true)`)
	exec(`CREATE TABLE users (id int); CREATE FUNCTION utc(timestamptz) RETURNS text LANGUAGE sql AS 'SELECT 1::text'; CREATE TYPE lanes AS ENUM ('a'); CREATE TABLE orders (id int)`)
	const all = `SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace`
	before := storetest.Ask[int](t, db, all)
	applied, err := pg.Migrate(t.Context(), direct, pg.MigrateConfig{})
	if err == nil || !strings.Contains(err.Error(), "the schema public already has objects with names that sendquota needs: lanes, users, utc()") || len(applied) > 0 {
		t.Errorf("applied %v, %v", applied, err)
	}
	if after := storetest.Ask[int](t, db, all); after != before {
		t.Errorf("%d tables and indexes, before it were %d", after, before)
	}
	exec(`DROP TABLE users; DROP FUNCTION utc; DROP TYPE lanes`)
	if _, err := pg.Migrate(t.Context(), direct, pg.MigrateConfig{}); err != nil {
		t.Fatal(err)
	}
	live(t, direct, db, "anna")
	if applied, err := pg.Migrate(t.Context(), direct, pg.MigrateConfig{}); err != nil || len(applied) > 0 {
		t.Errorf("once more: applied %v, %v", applied, err)
	}
	if n := storetest.Ask[int](t, db, `SELECT count(*) FROM goose_db_version`); n != 3 {
		t.Errorf("the other application has %d versions", n)
	}
	nowhere := changedURL(t, direct, func(_ *url.URL, q url.Values) { q.Set("search_path", "nowhere") })
	if _, err := pg.Migrate(t.Context(), nowhere, pg.MigrateConfig{}); err == nil || !strings.Contains(err.Error(), "search_path") {
		t.Errorf("without a schema: %v", err)
	}
}
