package store_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/pressly/goose/v3"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/migrations"
)

// The steps in which pushes and sends are divided.
const firstOfWeeks, lastOfWeeks = 30, 37

// setupPlain is an installation whose schema is contracted, but not divided yet.
func setupPlain(t *testing.T, recipients int) *beside {
	t.Helper()
	b := setupBeside(t, recipients)
	b.upBefore(t, firstOfWeeks)
	return b
}

// needed are our migrations before one, and those behind it that expand the schema: programs of this release need them.
func needed(t *testing.T, version int) fs.FS {
	t.Helper()
	files := later(t, nil).(fstest.MapFS)
	for name, file := range files {
		if name >= fmt.Sprintf("%04d", version) && migrations.Contracts(string(file.Data)) {
			delete(files, name)
		}
	}
	return files
}

// upBefore applies the migrations before one, and what programs of this release need.
func (b *beside) upBefore(t *testing.T, version int) {
	t.Helper()
	cfg := store.MigrateConfig{Wait: 5 * time.Minute, Contract: true, Files: needed(t, version), Tell: func(line string) { t.Log(line) }}
	if _, err := store.Migrate(t.Context(), b.url, cfg); err != nil {
		t.Fatal(err)
	}
}

// downBefore takes a migration and those after it back that contract the schema, each as often as others are in its way.
func (b *beside) downBefore(t *testing.T, version int64) {
	t.Helper()
	db, err := sql.Open("pgx", b.url)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	provider, err := goose.NewProvider(goose.DialectPostgres, db, migrations.FS)
	if err != nil {
		t.Fatal(err)
	}
	contracting := slices.DeleteFunc(provider.ListSources(), func(s *goose.Source) bool {
		return s.Version < version || slices.Contains(migrations.Needed(), s.Version)
	})
	for _, source := range slices.Backward(contracting) {
		eventually(t, "the way back is free", func() bool { // other transactions may be in its way
			_, err := provider.ApplyVersion(t.Context(), source.Version, false)
			if pgErr, ok := errors.AsType[*pgconn.PgError](err); err != nil && !errors.Is(err, goose.ErrNotApplied) && (!ok || pgErr.Code != "40P01") {
				t.Fatal(err)
			}
			return err == nil || errors.Is(err, goose.ErrNotApplied)
		})
	}
}

// mover is a program of this release that moves pushes a week or two ahead and back, too.
type mover struct {
	newer
	mu    *sync.Mutex
	moves map[uuid.UUID]int // that were tried
}

func (m mover) move(ctx context.Context, id uuid.UUID, recipient string, to time.Time) error {
	m.mu.Lock()
	m.moves[id]++
	m.mu.Unlock()
	return m.newer.move(ctx, id, recipient, to.AddDate(0, 0, max(0, rand.IntN(4)-1)*7))
}

// fetch moves all pushes that wait for a later week to now.
func (b *beside) fetch(t *testing.T, m mover) {
	t.Helper()
	rows, _ := b.db.Query(t.Context(), `SELECT id, recipient FROM pushes WHERE status = 'scheduled' AND send_at > now() + interval '1 hour'`)
	of := map[uuid.UUID]string{}
	for rows.Next() {
		var (
			id        uuid.UUID
			recipient string
		)
		if err := rows.Scan((*[16]byte)(&id), &recipient); err != nil {
			t.Fatal(err)
		}
		of[id] = recipient
	}
	if len(of) == 0 {
		t.Error("no push waits for a later week") // else the next lines prove little
	}
	for id, recipient := range of {
		m.moves[id]++
		if err := m.newer.move(t.Context(), id, recipient, time.Now().UTC().Truncate(time.Second)); err != nil {
			t.Fatal(err)
		}
	}
}

// unlike counts the rows that differ in the two forms of a table.
func unlike(t *testing.T, b *beside, table string) int {
	t.Helper()
	return ask[int](t, b.db, fmt.Sprintf(`
		SELECT count(*) FROM (SELECT p::text AS row FROM %s p) a FULL JOIN (SELECT p::text AS row FROM %[1]s_beside p) b ON a.row = b.row
		WHERE a.row IS NULL OR b.row IS NULL`, table))
}

// TestMigrate_Weeks: programs of this release work on while each step runs that divides the tables, and each on the way back.
// Each push ends once and is told of once, is sent at most once, and not after it was canceled, and the audit finds nothing.
func TestMigrate_Weeks(t *testing.T) {
	t.Parallel()
	b := setupPlain(t, 60)
	p := mover{b.newer(t), &sync.Mutex{}, map[uuid.UUID]int{}}
	b.hook(t)
	did, stop := b.start(t, "newer", p, 3)
	did(300)
	both := func(version int) (tables []string) { // when step and those before it are done
		switch {
		case version == firstOfWeeks+2:
			return []string{"pushes"}
		case version > firstOfWeeks+2 && version < lastOfWeeks:
			return []string{"pushes", "sends"}
		}
		return nil
	}
	look := func(what string, version int) {
		t.Helper()
		did(100)
		for _, table := range both(version) {
			if n := unlike(t, b, table); n > 0 {
				t.Fatalf("%s: %d rows of %s differ", what, n, table)
			}
		}
		b.audit(t, nil)
		if t.Failed() {
			t.Fatal(what)
		}
	}
	up := func() {
		for version := firstOfWeeks; version <= lastOfWeeks; version++ {
			b.upBefore(t, version+1)
			look(fmt.Sprint("up to ", version), version)
		}
	}
	up()
	if n := ask[int](t, b.db, `SELECT count(*) FROM pg_inherits WHERE inhparent IN ('pushes'::regclass, 'sends'::regclass)`); n < 61+35 {
		t.Errorf("%d partitions", n)
	}
	for version := lastOfWeeks; version >= firstOfWeeks; version-- {
		b.downBefore(t, int64(version))
		// The copies back are complete when both are made.
		if what := fmt.Sprint("down before ", version); version == firstOfWeeks+4 || version == firstOfWeeks+5 {
			look(what, lastOfWeeks-1)
		} else {
			look(what, 0)
		}
	}
	if n := ask[int](t, b.db, `SELECT count(*) FROM pg_class WHERE relname ~ '^(pushes|sends)_(\d|beside|aside)'`); n > 0 {
		t.Errorf("%d tables and indexes are left", n)
	}
	b.upBefore(t, lastOfWeeks+1)
	did(100)
	stop()
	b.fetch(t, p)
	b.drain(t, p.newer)
	if n := ask[int](t, b.db, `SELECT count(*) FROM pushes p WHERE 1 <> (SELECT count(*) FROM webhook_deliveries d WHERE d.push_id = p.id AND d.event = 'push.' || p.status)`); n > 0 {
		t.Errorf("of %d pushes not one end is told", n)
	}
	rows, _ := b.db.Query(t.Context(), `SELECT push_id, count(*) FROM webhook_deliveries WHERE event = 'push.scheduled' GROUP BY 1`)
	told := 0
	for ; rows.Next(); told++ {
		var (
			id uuid.UUID
			n  int
		)
		if err := rows.Scan((*[16]byte)(&id), &n); err != nil {
			t.Fatal(err)
		}
		if n > 1+p.moves[id] {
			t.Errorf("%s was moved %d times at most, and is told to be scheduled %d times", id, p.moves[id], n)
		}
	}
	if told < len(b.of) {
		t.Errorf("%d pushes are told to be scheduled, of %d", told, len(b.of))
	}
}

// TestMigrate_WeeksLarge divides tables that have many rows, and prints how long each step took, and the longest that a
// booking or a delivery took meanwhile. SENDQUOTA_MILLION=1 makes it a million pushes and 300,000 attempts.
func TestMigrate_WeeksLarge(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes half a minute")
	}
	pushes := 50_000
	if os.Getenv("SENDQUOTA_MILLION") != "" {
		pushes = 1_000_000
	}
	b := setupPlain(t, 60)
	b.exec(t, `INSERT INTO pushes (id, tenant_id, recipient_key, recipient, channel, message, requested_send_at, send_at, next_at, expires_at, status, plan, attempts, attempted_at, freed)
		SELECT gen_random_uuid(), $1, ('x' || encode(substr(sha256(uuid_send($1) || convert_to(r, 'UTF8')), 1, 8), 'hex'))::bit(64)::bigint, r,
			'log', json_build_object('body', repeat('x', 200)), at, at, at, at + interval '1 day', CASE WHEN i % 10 < 3 THEN 'sent' ELSE 'canceled' END, 1,
			(i % 10 < 3)::int, CASE WHEN i % 10 < 3 THEN at END, i % 10 >= 3
		FROM generate_series(1, $2::int) i, LATERAL (SELECT 'many-' || i % 100000 AS r, date_trunc('second', now() - i * (interval '120 days' / $2::int)) AS at) p`, b.tenant, pushes)
	b.exec(t, `INSERT INTO sends (push_id, attempt, tenant_id, recipient_key, recipient, channel, started_at, lease_until, ended_at, outcome)
		SELECT id, 1, tenant_id, recipient_key, recipient, channel, send_at, send_at + interval '1 minute', send_at, 'delivered' FROM pushes WHERE status = 'sent'`)
	b.exec(t, `VACUUM ANALYZE`)
	size := ask[int64](t, b.db, `SELECT pg_total_relation_size('pushes') + pg_total_relation_size('sends')`)
	t.Logf("%d pushes and %d attempts, %d MB", pushes, ask[int](t, b.db, `SELECT count(*) FROM sends`), size>>20)
	p := b.newer(t)
	did, stop := b.start(t, "newer", p, 2)
	did(100)
	timed := func() (longest time.Duration) {
		for i := range 20 {
			took := time.Now()
			at := took.UTC().Truncate(time.Second)
			if i%2 == 1 {
				at = at.AddDate(0, 0, i)
			}
			id, err := p.book(t.Context(), "timed", at, at.Add(time.Hour))
			if err != nil {
				t.Fatal(err)
			}
			longest, took = max(longest, time.Since(took)), time.Now()
			if i%2 == 1 {
				if _, err := p.Cancel(t.Context(), b.tenant, id); err != nil {
					t.Fatal(err)
				}
			} else if a, err := p.claim(t.Context(), "timed", time.Hour); err != nil || a.push == uuid.Nil {
				t.Fatal(a, err)
			} else if _, err := p.finish(t.Context(), a, push.Delivered, push.Sent, false); err != nil {
				t.Fatal(err)
			}
			longest = max(longest, time.Since(took))
		}
		return longest
	}
	t.Logf("before: the longest of the service took %s", timed())
	for version := firstOfWeeks; version <= lastOfWeeks; version++ {
		var worst time.Duration
		from := time.Now()
		m := migrate(t.Context(), b.url, store.MigrateConfig{Wait: 5 * time.Minute, Contract: true, Files: needed(t, version+1)})
		for !m.ended() {
			worst = max(worst, timed())
		}
		if m.err != nil {
			t.Fatal(m.err)
		}
		t.Logf("%v took %s; the longest of the service took %s meanwhile; %d MB", m.applied, time.Since(from).Round(time.Millisecond), worst.Round(time.Millisecond),
			ask[int64](t, b.db, `SELECT pg_database_size(current_database())`)>>20)
	}
	did(100)
	stop()
	if n := ask[int](t, b.db, `SELECT count(*) FROM pushes WHERE recipient LIKE 'many-%'`); n != pushes {
		t.Errorf("%d pushes, of %d", n, pushes)
	}
	if n := ask[int](t, b.db, `SELECT count(*) FROM sends WHERE recipient LIKE 'many-%'`); n != pushes*3/10 {
		t.Errorf("%d attempts, of %d", n, pushes*3/10)
	}
	b.audit(t, nil)
}
