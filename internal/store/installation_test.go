package store_test

import (
	"context"
	"net/url"
	"testing"

	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/internal/testenv"
)

// nameOf waits for the name of a database.
func nameOf(t *testing.T, st *store.Store) string {
	t.Helper()
	var name string
	eventually(t, "the database has a name", func() (known bool) { name, known = st.Installation(); return known })
	return name
}

// TestInstallation: every program on a database has the same name for it, and no copy has that name.
func TestInstallation(t *testing.T) {
	t.Parallel()
	b := setupNew(t)
	here := nameOf(t, b.Store)
	if again := nameOf(t, openURL(t, b.url, store.Config{})); again != here || len(here) != 10 {
		t.Errorf("it is called %q, and %q", here, again)
	}
	if other := nameOf(t, setupNew(t).Store); other == here {
		t.Errorf("two databases are called %s", here)
	}

	// A copy with the same row, as a dump has it.
	copied := setupNew(t)
	copied.exec(t, `DELETE FROM installation`)
	copied.exec(t, `INSERT INTO installation (id) VALUES ($1)`, ask[[16]byte](t, b.db, `SELECT id FROM installation`))
	if other := nameOf(t, openURL(t, copied.url, store.Config{})); other == here {
		t.Errorf("a copy is called %s, too", here)
	}
}

// TestInstallation_WithoutPostgres: Installation does not wait for a server that is down, and has the name when the
// server is back.
func TestInstallation_WithoutPostgres(t *testing.T) {
	t.Parallel()
	server := testenv.OwnPostgres(t)
	want := nameOf(t, openURL(t, server.URL, store.Config{}))
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	st := openURL(t, server.URL, store.Config{})
	if name, known := st.Installation(); known {
		t.Errorf("it is called %s without Postgres", name)
	}
	if err := server.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if name := nameOf(t, st); name != want {
		t.Errorf("it was called %s before, and %s now", want, name)
	}
}

// TestInstallation_OfAnyRole: a role that may not read the identity of the server gets a name all the same.
func TestInstallation_OfAnyRole(t *testing.T) {
	t.Parallel()
	b := setupNew(t)
	b.exec(t, `REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC`)
	role := "plain_" + nameOf(t, b.Store)
	b.exec(t, `CREATE ROLE `+role+` LOGIN PASSWORD 'x'`)
	t.Cleanup(func() { _, _ = b.db.Exec(context.Background(), `DROP OWNED BY `+role+`; DROP ROLE `+role) })
	b.exec(t, `GRANT SELECT ON installation TO `+role)
	u, err := url.Parse(b.url)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(role, "x")
	if name := nameOf(t, openURL(t, u.String(), store.Config{})); len(name) != 10 {
		t.Errorf("it is called %q", name)
	}
}
