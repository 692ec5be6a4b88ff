package pg_test

import (
	"context"
	"database/sql"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver pgx
	"github.com/pressly/goose/v3"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/internal/store/pg"
	"github.com/sendquota/sendquota/internal/store/storetest"
	"github.com/sendquota/sendquota/internal/testenv"
	"github.com/sendquota/sendquota/migrations"
)

const (
	wideMigration = "-- +goose Up\nALTER TABLE pushes ADD COLUMN wide int;\n-- +goose Down\nALTER TABLE pushes DROP COLUMN wide;\n"
	slowMigration = "-- +goose NO TRANSACTION\n-- +goose Up\nCREATE INDEX CONCURRENTLY IF NOT EXISTS live_slow ON live (tenant_id, channel);\n-- +goose Down\nDROP INDEX CONCURRENTLY live_slow;\n"
)

// later returns our migrations, followed by the given ones of an imaginary later version.
func later(t *testing.T, more map[string]string) fs.FS {
	t.Helper()
	files := fstest.MapFS{}
	names, err := fs.Glob(migrations.FS, "*.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		text, err := fs.ReadFile(migrations.FS, name)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = &fstest.MapFile{Data: text}
	}
	for name, text := range more {
		files[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return files
}

// migrator is a migration that runs beside the test.
type migrator struct {
	mu   sync.Mutex
	said []string
	done chan struct{}

	applied []string
	err     error
}

func migrate(ctx context.Context, url string, cfg pg.MigrateConfig) *migrator {
	m := &migrator{done: make(chan struct{})}
	cfg.Tell = func(line string) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.said = append(m.said, line)
	}
	go func() {
		defer close(m.done)
		m.applied, m.err = pg.Migrate(ctx, url, cfg)
	}()
	return m
}

func (m *migrator) says(part string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.ContainsFunc(m.said, func(line string) bool { return strings.Contains(line, part) })
}

func (m *migrator) ended() bool {
	select {
	case <-m.done:
		return true
	default:
		return false
	}
}

// reader begins a transaction that has read from pushes and keeps its snapshot, as a backup does.
func reader(t *testing.T, url string) (tx pgx.Tx, pid string) {
	t.Helper()
	db := storetest.Connect(t, url)
	tx, err := db.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		t.Fatal(err)
	}
	var n int
	if err := tx.QueryRow(t.Context(), `SELECT pg_backend_pid() FROM (SELECT count(*) FROM pushes) c`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return tx, fmt.Sprint(n)
}

// TestMigrate_UnderLoad applies migrations while a long transaction holds a lock that they need, and pushes are
// submitted. The pushes do not wait for the long transaction. The migrations wait, name it, and continue when it has
// ended.
func TestMigrate_UnderLoad(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"9001_wide.sql": wideMigration, "9001_slow.sql": slowMigration} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setupNew(t)
			tx, pid := reader(t, b.URL)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			var callers sync.WaitGroup
			booked := make(chan struct{})
			for n := range 4 {
				callers.Go(func() {
					for i := 0; ctx.Err() == nil; i++ {
						v, err := b.Book(ctx, booking.Order{Drafts: []booking.Draft{storetest.Draft(b.TenantID, fmt.Sprintf("r-%d-%d", n, i), time.Hour)}, Policy: storetest.ThreeRules})
						if ctx.Err() != nil {
							return
						}
						if err != nil || v[0].Outcome != booking.Booked {
							t.Errorf("%+v, %v", v, err)
							return
						}
						select {
						case booked <- struct{}{}:
						case <-ctx.Done():
						}
					}
				})
			}
			bookings := func(n int) {
				for range n {
					<-booked
				}
			}
			bookings(20)
			m := migrate(t.Context(), b.URL, pg.MigrateConfig{Wait: 5 * time.Minute, Files: later(t, map[string]string{name: text})})
			for !m.says(name + ": waiting for a lock held by process " + pid + " (") {
				bookings(1) // until the migration reports the session, or the test times out
			}
			bookings(200)
			if m.ended() {
				t.Fatalf("applied %v, %v although another transaction holds a lock", m.applied, m.err)
			}
			if err := tx.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
			for !m.ended() {
				bookings(1)
			}
			if m.err != nil || !slices.Equal(m.applied, []string{name}) {
				t.Errorf("applied %v, %v", m.applied, m.err)
			}
			bookings(20)
			stop()
			callers.Wait()
			done := storetest.Ask[bool](t, b.DB, `SELECT (SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass('live_slow'))
				IS TRUE OR EXISTS (SELECT FROM information_schema.columns WHERE table_name = 'pushes' AND column_name = 'wide')`)
			if !done {
				t.Error("nothing was changed")
			}
		})
	}
}

// TestMigrate_GivesUp checks that the error names the session that holds the lock for too long, and that the next call
// starts over, even after half an index.
func TestMigrate_GivesUp(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"9001_wide.sql": wideMigration, "9001_slow.sql": slowMigration} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := testenv.Postgres(t)
			cfg := pg.MigrateConfig{Wait: 5 * time.Second, Files: later(t, map[string]string{"9000_early.sql": "-- +goose Up\nCREATE TABLE early ();\n", name: text})}
			tx, pid := reader(t, url)
			applied, err := pg.Migrate(t.Context(), url, cfg)
			if !slices.Equal(applied, []string{"9000_early.sql"}) {
				t.Errorf("applied %v", applied)
			}
			if err == nil || !strings.Contains(err.Error(), name+" could not get a lock that it needs") || !strings.Contains(err.Error(), "process "+pid+" (") || !strings.Contains(err.Error(), "idle in transaction") {
				t.Errorf("%v does not name process %s", err, pid)
			}
			if err := tx.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
			db := storetest.Connect(t, url)
			leftovers := storetest.Ask[int](t, db, `SELECT count(*) FROM pg_index WHERE NOT indisvalid`)
			if (leftovers == 1) != (text == slowMigration) {
				t.Errorf("%d invalid indexes", leftovers) // otherwise the next lines prove little
			}
			m := migrate(t.Context(), url, cfg)
			<-m.done
			if m.err != nil || !slices.Equal(m.applied, []string{name}) {
				t.Errorf("applied %v, %v", m.applied, m.err)
			}
			if text == slowMigration && !m.says("removing the index live_slow") {
				t.Errorf("it says %q", m.said)
			}
			if n := storetest.Ask[int](t, db, `SELECT count(*) FROM pg_index WHERE NOT indisvalid`); n != 0 {
				t.Errorf("%d indexes are invalid", n)
			}
		})
	}
}

// TestMigrate_Together checks that several migrators on a new database work one at a time. The work of one that is cut
// off is completed, and no statement runs twice.
func TestMigrate_Together(t *testing.T) {
	t.Parallel()
	url := testenv.Postgres(t)
	db := storetest.Connect(t, url)
	if _, err := db.Exec(t.Context(), `DROP SCHEMA public CASCADE; CREATE SCHEMA public`); err != nil {
		t.Fatal(err)
	}
	cfg := pg.MigrateConfig{Wait: 5 * time.Minute, Files: later(t, map[string]string{"9001_wide.sql": wideMigration, "9002_slow.sql": slowMigration})}
	tx, err := storetest.Connect(t, url).BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err == nil {
		_, err = tx.Exec(t.Context(), `SELECT`) // the build of an index waits for its snapshot
	}
	if err != nil {
		t.Fatal(err)
	}
	var all []*migrator
	dying, kill := context.WithCancel(t.Context())
	defer kill()
	all = append(all, migrate(dying, url, cfg))
	storetest.Eventually(t, "the first builds an index", func() bool { return all[0].says("9002_slow.sql: waiting for") })
	for range 3 {
		all = append(all, migrate(t.Context(), url, cfg))
	}
	for _, m := range all[1:] {
		storetest.Eventually(t, "the others wait", func() bool { return m.says("another migration is running") })
	}
	kill()
	<-all[0].done
	if all[0].err == nil {
		t.Error("it was not cut off")
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	var applied []string
	for _, m := range all {
		<-m.done
		if m != all[0] && m.err != nil {
			t.Error(m.err)
		}
		applied = append(applied, m.applied...)
	}
	slices.Sort(applied)
	versions := storetest.Ask[[]string](t, db, `SELECT array_agg(version_id::text ORDER BY id) FROM sendquota_version WHERE version_id > 0`)
	if len(applied) != len(versions) || len(slices.Compact(slices.Clone(applied))) != len(applied) {
		t.Errorf("applied %v, recorded %v", applied, versions)
	}
	if n := storetest.Ask[int](t, db, `SELECT count(*) FROM pg_index WHERE NOT indisvalid`); n != 0 || !storetest.Ask[bool](t, db, `SELECT to_regclass('live_slow') IS NOT NULL`) {
		t.Errorf("%d indexes are invalid, or it is not there", n)
	}
}

// TestMigrate_Contract checks that a migration that drops tables or columns of the release before is held back, and
// reported, while a program may use them. It is applied on request, or when no program has been at work.
func TestMigrate_Contract(t *testing.T) {
	t.Parallel()
	b := setupNew(t)
	const narrow = "-- contract: the release before reads it.\n-- +goose Up\nDROP TABLE channel_views;\n-- +goose Down\nSELECT;\n"
	fresh := testenv.Postgres(t)
	b.Booked(t, "anna", time.Hour)
	b.Close()
	for _, row := range []struct {
		url      string
		contract bool
		files    map[string]string
		applied  []string
		left     bool
	}{
		{b.URL, false, map[string]string{"9001_wide.sql": wideMigration, "9002_narrow.sql": narrow}, []string{"9001_wide.sql"}, true},
		{b.URL, false, map[string]string{"9001_wide.sql": wideMigration, "9002_narrow.sql": narrow}, nil, true},
		{b.URL, true, map[string]string{"9001_wide.sql": wideMigration, "9002_narrow.sql": narrow}, []string{"9002_narrow.sql"}, false},
		{fresh, false, map[string]string{"9001_wide.sql": wideMigration, "9002_narrow.sql": narrow}, []string{"9001_wide.sql", "9002_narrow.sql"}, false},
	} {
		m := migrate(t.Context(), row.url, pg.MigrateConfig{Contract: row.contract, Files: later(t, row.files)})
		<-m.done
		if m.err != nil || !slices.Equal(m.applied, row.applied) || m.says("9002_narrow.sql is skipped") != row.left {
			t.Errorf("applied %v, %v, says %q; want %+v", m.applied, m.err, m.said, row)
		}
	}
}

// TestMigrate_LowerNumber checks that a new migration with a lower number than the last one is applied.
func TestMigrate_LowerNumber(t *testing.T) {
	t.Parallel()
	url := testenv.Postgres(t)
	files := map[string]string{"9002_slow.sql": slowMigration}
	for _, name := range []string{"9002_slow.sql", "9001_wide.sql"} {
		applied, err := pg.Migrate(t.Context(), url, pg.MigrateConfig{Files: later(t, files)})
		if err != nil || !slices.Equal(applied, []string{name}) {
			t.Errorf("applied %v, %v, want %s", applied, err, name)
		}
		files["9001_wide.sql"] = wideMigration
	}
}

// TestMigrate_OldSchema checks that the migration and programs refuse a database of an early version with a remedy, and
// leave it unchanged.
func TestMigrate_OldSchema(t *testing.T) {
	t.Parallel()
	const say = "dump what you need with pg_dump, and run sendquota migrate on an empty"
	for name, tables := range map[string]string{
		"the last":  `CREATE TABLE pushes (id uuid) PARTITION BY HASH (id); CREATE FUNCTION tell_booked() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'`,
		"the first": `CREATE TABLE pushes (id uuid)`,
	} {
		url := testenv.Postgres(t)
		db := storetest.Connect(t, url)
		if _, err := db.Exec(t.Context(), `BEGIN; DROP SCHEMA public CASCADE; CREATE SCHEMA public; CREATE TABLE goose_db_version (version_id bigint, is_applied bool); COMMIT; `+tables); err != nil {
			t.Fatal(err)
		}
		const all = `SELECT string_agg(oid::text, ' ' ORDER BY oid) FROM pg_class WHERE relnamespace = 'public'::regnamespace`
		before := storetest.Ask[string](t, db, all)
		if applied, err := pg.Migrate(t.Context(), url, pg.MigrateConfig{}); err == nil || !strings.Contains(err.Error(), say) || len(applied) > 0 {
			t.Errorf("%s: applied %v, %v", name, applied, err)
		}
		if after := storetest.Ask[string](t, db, all); after != before {
			t.Errorf("%s: it was changed", name)
		}
		if err := storetest.OpenURL(t, url, store.Config{}).Ready(t.Context()); err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("%s: ready: %v", name, err)
		}
	}
}

// TestMigrate_DownAndUp checks that every migration can be undone, in development.
func TestMigrate_DownAndUp(t *testing.T) {
	t.Parallel()
	url := testenv.Postgres(t)
	db, err := sql.Open("pgx", url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	provider, err := goose.NewProvider(goose.DialectPostgres, db, migrations.FS, goose.WithTableName("sendquota_version"))
	if err != nil {
		t.Fatal(err)
	}
	const columns = `SELECT string_agg(format('%s.%s %s %s %s', table_name, column_name, data_type, is_nullable, column_default), E'\n' ORDER BY table_name, column_name)
		FROM information_schema.columns WHERE table_schema = 'public' AND NOT (SELECT relispartition FROM pg_class WHERE oid = table_name::text::regclass)`
	watch := storetest.Connect(t, url)
	before := storetest.Ask[string](t, watch, columns)
	undone, err := provider.DownTo(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if left := storetest.Ask[int](t, watch, `SELECT count(*) FROM information_schema.tables WHERE table_schema = 'public'`); left != 1 {
		t.Errorf("%d tables are left, besides goose's own", left-1)
	}
	applied, err := pg.Migrate(t.Context(), url, pg.MigrateConfig{})
	if err != nil || len(applied) != len(undone) {
		t.Errorf("applied %v of %d, %v", applied, len(undone), err)
	}
	if after := storetest.Ask[string](t, watch, columns); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}
