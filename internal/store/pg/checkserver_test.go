package pg_test

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/sendquota/sendquota/internal/health"
	"github.com/sendquota/sendquota/internal/store/pg"
	"github.com/sendquota/sendquota/internal/store/storetest"
	"github.com/sendquota/sendquota/internal/testenv"
)

// TestSuits checks that a Postgres with default settings is reported to lack locks, and one with few connections to
// lack connections, all at once; the store works on it nonetheless. A Postgres that is set up as documented lacks
// nothing.
func TestSuits(t *testing.T) {
	t.Parallel()
	usual := setup(t)
	if err := usual.CheckServer(t.Context()); err != nil {
		t.Errorf("the tests' Postgres: %v", err)
	}
	if err := pg.Check(t.Context(), usual.URL, pg.Config{Sealer: testenv.Sealer()}); err != nil {
		t.Errorf("the tests' Postgres: %v", err)
	}

	server := testenv.OwnPostgres(t, "max_locks_per_transaction=64", "max_connections=40", "superuser_reserved_connections=3").URL
	for _, statement := range []string{
		`CREATE ROLE app LOGIN; GRANT ALL ON ALL TABLES IN SCHEMA public TO app`,
		`CREATE DATABASE empty`, `CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0`,
	} {
		testenv.Exec(t, server, statement)
	}
	as := func(database string) string {
		return changedURL(t, server, func(u *url.URL, _ url.Values) {
			u.User = url.User("app")
			if database != "" {
				u.Path = "/" + database
			}
		})
	}
	st := storetest.OpenURL(t, as(""), pg.Config{MaxConns: 12, ReadConns: 7})
	if got := stateOf(t, st); got != "ok" {
		t.Errorf("it is %s", got)
	}
	wants := func(err error, parts ...string) {
		t.Helper()
		for _, part := range parts {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%v, want it to say %q", err, part)
			}
		}
	}
	err := st.CheckServer(t.Context())
	wants(err, "max_locks_per_transaction = 64", "allows 37 connections", "up to 19 each")
	if lacks := new(health.Deficits); !errors.As(err, &lacks) || lacks.State() != "few_locks" || !lacks.Usable() {
		t.Errorf("%#v", err)
	}
	if err := storetest.OpenURL(t, as(""), pg.Config{MaxConns: 11, ReadConns: 7}).CheckServer(t.Context()); err == nil || strings.Contains(err.Error(), "connections") {
		t.Errorf("36 of 37 connections: %v", err)
	}
	testenv.Exec(t, server, `ALTER ROLE app CONNECTION LIMIT 30`)
	wants(st.CheckServer(t.Context()), "allows 30 connections")

	small := pg.Config{MaxConns: 8, ReadConns: 8}
	wants(pg.Check(t.Context(), as("empty"), small), "sendquota migrate", "= 64", "allows 30 connections")
	wants(pg.Check(t.Context(), as("latin"), small), "LATIN1", "sendquota migrate", "= 64")
	wants(pg.Check(t.Context(), as("none"), small), "connect to Postgres", "3D000")
}
