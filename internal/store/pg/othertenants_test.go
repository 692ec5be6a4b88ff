package pg_test

import (
	"net/url"
	"testing"

	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/internal/testenv"
)

// TestOtherTenants checks the number of tenants with another name. A database without tables has none, and a table that
// cannot be read is an error.
func TestOtherTenants(t *testing.T) {
	t.Parallel()
	database := testenv.Postgres(t)
	others := func() int {
		t.Helper()
		n, err := store.OtherTenants(t.Context(), database, "demo")
		testenv.Check(t, err)
		return n
	}
	if n := others(); n != 0 {
		t.Errorf("%d others in a new database", n)
	}
	testenv.Exec(t, database, `INSERT INTO tenants (id, name) SELECT gen_random_uuid(), name FROM unnest('{demo,acme,Demo}'::text[]) AS name`)
	if n := others(); n != 2 {
		t.Errorf("%d others, want acme and Demo", n)
	}
	testenv.Exec(t, database, `CREATE SCHEMA other; CREATE TABLE other.tenants AS SELECT 42 AS n; CREATE SCHEMA empty`)
	u, err := url.Parse(database)
	testenv.Check(t, err)
	query := u.Query()
	for schema, readable := range map[string]bool{"empty": true, "other": false} {
		query.Set("search_path", schema)
		u.RawQuery = query.Encode()
		if n, err := store.OtherTenants(t.Context(), u.String(), "demo"); n != 0 || (err == nil) != readable {
			t.Errorf("in the schema %s: %d, %v", schema, n, err)
		}
	}
}
