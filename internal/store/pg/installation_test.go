package pg_test

import (
	"context"
	"net/url"
	"testing"

	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/internal/store/storetest"
	"github.com/sendquota/sendquota/internal/testenv"
)

// nameOf waits for the name of a database.
func nameOf(t *testing.T, st *store.Store) string {
	t.Helper()
	var name string
	storetest.Eventually(t, "the database has a name", func() (known bool) { name, known = st.Installation(); return known })
	return name
}

// TestInstallation checks that every program on a database has the same name for it, and that no copy has that name.
func TestInstallation(t *testing.T) {
	t.Parallel()
	b := setupNew(t)
	here := nameOf(t, b.Store)
	if again := nameOf(t, storetest.OpenURL(t, b.URL, store.Config{})); again != here || len(here) != 10 {
		t.Errorf("it is called %q, and %q", here, again)
	}
	if other := nameOf(t, setupNew(t).Store); other == here {
		t.Errorf("two databases are called %s", here)
	}

	// A copy has the same row, as after a dump.
	copied := setupNew(t)
	copied.Exec(t, `DELETE FROM installation`)
	copied.Exec(t, `INSERT INTO installation (id) VALUES ($1)`, storetest.Ask[[16]byte](t, b.DB, `SELECT id FROM installation`))
	if other := nameOf(t, storetest.OpenURL(t, copied.URL, store.Config{})); other == here {
		t.Errorf("a copy is called %s, too", here)
	}
}

// TestInstallation_WithoutPostgres checks that Installation does not wait for a server that is down, and returns the
// name when the server is back.
func TestInstallation_WithoutPostgres(t *testing.T) {
	t.Parallel()
	server := testenv.OwnPostgres(t)
	want := nameOf(t, storetest.OpenURL(t, server.URL, store.Config{}))
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	st := storetest.OpenURL(t, server.URL, store.Config{})
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

// TestInstallation_OfAnyRole checks that a role that may not read the identity of the server gets a name all the same.
func TestInstallation_OfAnyRole(t *testing.T) {
	t.Parallel()
	b := setupNew(t)
	b.Exec(t, `REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC`)
	role := "plain_" + nameOf(t, b.Store)
	b.Exec(t, `CREATE ROLE `+role+` LOGIN PASSWORD 'x'`)
	t.Cleanup(func() { _, _ = b.DB.Exec(context.Background(), `DROP OWNED BY `+role+`; DROP ROLE `+role) })
	b.Exec(t, `GRANT SELECT ON installation TO `+role)
	u, err := url.Parse(b.URL)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(role, "x")
	if name := nameOf(t, storetest.OpenURL(t, u.String(), store.Config{})); len(name) != 10 {
		t.Errorf("it is called %q", name)
	}
}
