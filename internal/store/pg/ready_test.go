package pg_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/internal/store/pg"
	"github.com/sendquota/sendquota/internal/store/storetest"
	"github.com/sendquota/sendquota/migrations"
)

// stateOf returns the state that Ready reports for a database that answers.
func stateOf(t *testing.T, st *store.Store) string {
	t.Helper()
	err := st.Ready(t.Context())
	var unready *pg.UnreadyError
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &unready):
		return unready.State()
	}
	return err.Error()
}

// TestReady checks the states of a database that answers and is not ready.
func TestReady(t *testing.T) {
	t.Parallel()
	b := setupNew(t)
	fresh := func() *store.Store { return storetest.OpenURL(t, b.URL, pg.Config{MaxConns: 1}) }
	if got := stateOf(t, fresh()); got != "ok" {
		t.Errorf("a migrated database: %s", got)
	}
	b.Exec(t, `CREATE TEMP TABLE kept AS SELECT * FROM sendquota_version`)
	needed := migrations.Needed()
	b.Exec(t, `DELETE FROM sendquota_version WHERE version_id = $1`, needed[len(needed)/2])
	if got := stateOf(t, fresh()); got != "not_migrated" {
		t.Errorf("a migration is missing: %s", got)
	}
	b.Exec(t, `DELETE FROM sendquota_version; INSERT INTO sendquota_version (version_id, is_applied) SELECT version_id, is_applied FROM kept ORDER BY id`)
	b.Exec(t, `INSERT INTO sendquota_version (version_id, is_applied) SELECT version_id + 7, true FROM kept ORDER BY version_id DESC LIMIT 1`)
	if got := stateOf(t, fresh()); got != "ok" {
		t.Errorf("a newer database: %s", got)
	}
	if warning, err := fresh().Newer(t.Context()); err != nil || !strings.Contains(warning, "newer than this program") {
		t.Errorf("it says %q, %v", warning, err)
	}
	database := storetest.Ask[string](t, b.DB, `SELECT quote_ident(current_database())`)
	b.Exec(t, `ALTER DATABASE `+database+` SET default_transaction_read_only = on`)
	if got := stateOf(t, fresh()); got != "read_only" {
		t.Errorf("a database that does not write: %s", got)
	}
	b.Exec(t, `ALTER DATABASE `+database+` RESET default_transaction_read_only`)

	role := "reader_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	b.Exec(t, `CREATE ROLE `+role+` LOGIN PASSWORD 'x'; GRANT SELECT ON ALL TABLES IN SCHEMA public TO `+role)
	t.Cleanup(func() { _, _ = b.DB.Exec(context.Background(), `DROP OWNED BY `+role+`; DROP ROLE `+role) })
	u, err := url.Parse(b.URL)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(role, "x")
	if got := stateOf(t, storetest.OpenURL(t, u.String(), pg.Config{MaxConns: 1})); got != "not_writable" {
		t.Errorf("a role that may only read: %s", got)
	}
	b.Exec(t, `GRANT ALL ON ALL TABLES IN SCHEMA public TO `+role)
	writer := storetest.OpenURL(t, u.String(), pg.Config{MaxConns: 1})
	if got := stateOf(t, writer); got != "ok" {
		t.Errorf("a role that may write: %s", got)
	}
	tables := storetest.Ask[[]string](t, b.DB, `SELECT array_agg(relname::text) FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
		AND relname NOT IN ('sendquota_version', 'tenants', 'installation', 'partitioning')`) // sendquota migrate writes these
	for _, table := range tables {
		b.Exec(t, `REVOKE INSERT ON `+table+` FROM `+role)
		if got := stateOf(t, writer); got != "not_writable" {
			t.Errorf("a role that may not insert into %s: %s", table, got)
		}
		b.Exec(t, `GRANT INSERT ON `+table+` TO `+role)
	}
	b.Exec(t, `DROP TABLE sendquota_version`)
	if got := stateOf(t, fresh()); got != "not_migrated" {
		t.Errorf("an empty database: %s", got)
	}
}

// TestBook_ErrorCodes checks that Postgres' errors that no request can cause are [push.ErrUnavailable].
func TestBook_ErrorCodes(t *testing.T) {
	t.Parallel()
	b := setupNew(t)
	b.Exec(t, `CREATE FUNCTION trouble() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
		EXECUTE format('DO $do$ BEGIN RAISE EXCEPTION USING ERRCODE = %L, MESSAGE = ''trouble''; END $do$', NEW.category); END $$;
		CREATE TRIGGER trouble BEFORE INSERT ON pushes FOR EACH ROW WHEN (NEW.category <> '') EXECUTE FUNCTION trouble()`)
	st, lanes := storetest.OpenURL(t, b.URL, pg.Config{Lanes: 64, MaxConns: 8}), push.Lanes(64)
	var all sync.WaitGroup
	for code, unavailable := range map[string]bool{
		"53000": true, "53100": true, "53200": true, "53300": true, "53400": true, "57000": true, "57014": true, "57P01": true, "57P04": true,
		"58000": true, "58030": true, "58P01": true, "55P03": true, "25006": true, "25P04": true, "08006": true, "40001": true, "42P01": true, "42501": true,
		"22003": false, "23505": false, "XX000": false,
	} {
		recipient := recipientIn(lanes[0], b.TenantID) // so that no push shares a transaction with others
		lanes = lanes[1:]
		all.Go(func() { // most of the time they wait for the next try
			d := storetest.Draft(b.TenantID, recipient, time.Hour)
			d.Push.Category = code
			_, err := st.Book(t.Context(), booking.Order{Drafts: []booking.Draft{d}})
			if err == nil || errors.Is(err, push.ErrUnavailable) != unavailable {
				t.Errorf("%s: %v", code, err)
			}
		})
	}
	all.Wait()
	if v := storetest.MustBook(t, b.Store, storetest.ThreeRules, storetest.Draft(b.TenantID, "anna", time.Hour)); v.Outcome != booking.Booked {
		t.Errorf("afterwards: %+v", v)
	}
}

// TestStore_DropsReadOnlyConnections checks that the store drops its connections to a server that became a standby as
// soon as it notices, so that it reaches the server that took over the name.
func TestStore_DropsReadOnlyConnections(t *testing.T) {
	t.Parallel()
	b := setupNew(t)
	const conns = 4
	database := storetest.Ask[string](t, b.DB, `SELECT quote_ident(current_database())`)
	b.Exec(t, `ALTER DATABASE `+database+` SET default_transaction_read_only = on`)
	demoted := storetest.OpenURL(t, b.URL, pg.Config{MaxConns: conns})
	if _, err := demoted.Book(t.Context(), booking.Order{Drafts: []booking.Draft{storetest.Draft(b.TenantID, "a", time.Hour)}}); !errors.Is(err, push.ErrUnavailable) {
		t.Fatalf("on a server that does not write: %v", err)
	}
	b.Exec(t, `ALTER DATABASE `+database+` RESET default_transaction_read_only`)
	for i := range 2 * conns {
		if v, err := demoted.Book(t.Context(), booking.Order{Drafts: []booking.Draft{storetest.Draft(b.TenantID, fmt.Sprint(i), time.Hour)}}); err != nil || v[0].Outcome != booking.Booked {
			t.Fatalf("when another server has taken over, booking %d: %v", i, err)
		}
	}
}
