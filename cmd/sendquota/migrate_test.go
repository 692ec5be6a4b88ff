package main

import (
	"bytes"
	"net/url"
	"strings"
	"testing"

	"github.com/sendquota/sendquota/internal/testenv"
)

// TestMigrateStatus: it lists missing migrations, changes nothing, and succeeds after a migration.
func TestMigrateStatus(t *testing.T) {
	t.Parallel()
	migrated := testenv.Postgres(t)
	testenv.Exec(t, migrated, `CREATE SCHEMA empty`)
	u, err := url.Parse(migrated)
	testenv.Check(t, err)
	q := u.Query()
	q.Set("search_path", "empty")
	u.RawQuery = q.Encode()
	empty := []string{"DATABASE_URL=" + u.String()}
	for range 2 {
		var out bytes.Buffer
		said, status := tool(t, empty, &out, "migrate", "--status")
		if status != 1 || !strings.Contains(said, "run: sendquota migrate") || !strings.Contains(out.String(), "0001_schema.sql  no") {
			t.Errorf("%d: %s%s", status, out.String(), said)
		}
	}
	var out bytes.Buffer
	if said, status := tool(t, []string{"DATABASE_URL=" + migrated}, &out, "migrate", "--status", "--json"); status != 0 || !strings.Contains(out.String(), `"applied":true`) {
		t.Errorf("%d: %s%s", status, out.String(), said)
	}
}
