package store_test

import (
	"database/sql"
	"fmt"
	"io/fs"
	"os"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/uuid"
	"github.com/pressly/goose/v3"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/migrations"
)

// before are our migrations before one.
func before(t *testing.T, first string) fs.FS {
	t.Helper()
	files := fstest.MapFS{}
	names, err := fs.Glob(migrations.FS, "*.sql")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if name < first {
			text, err := fs.ReadFile(migrations.FS, name)
			if err != nil {
				t.Fatal(err)
			}
			files[name] = &fstest.MapFile{Data: text}
		}
	}
	return files
}

// left is what the release before has left in a database: a push of a recipient for each state.
func left(t *testing.T, b *beside) (pushes map[string]uuid.UUID) {
	t.Helper()
	pushes = map[string]uuid.UUID{}
	o := b.older(t)
	book := func(recipient string) (id uuid.UUID) {
		at := time.Now().UTC().Truncate(time.Second)
		id, err := o.book(t.Context(), recipient, at, at.Add(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		pushes[recipient] = id
		return id
	}
	attempt := func(recipient string, lease time.Duration) attemptOf {
		a, err := o.claim(t.Context(), recipient, lease)
		if err != nil || a.push != pushes[recipient] {
			t.Fatal(a, err)
		}
		return a
	}
	finish := func(a attemptOf, outcome push.Outcome, status push.Status) {
		if ended, err := o.finish(t.Context(), a, outcome, status, false); err != nil || !ended {
			t.Fatal(ended, err)
		}
	}
	book("waits")
	book("again")
	finish(attempt("again", time.Hour), push.Refused, push.Scheduled)
	b.exec(t, `UPDATE pushes SET next_at = clock_timestamp() + interval '1 hour' WHERE id = $1`, pushes["again"])
	book("sending")
	finish(attempt("sending", time.Hour), push.Refused, push.Scheduled)
	attempt("sending", time.Millisecond)
	book("sent")
	finish(attempt("sent", time.Hour), push.Delivered, push.Sent)
	canceled, err := o.cancel(t.Context(), book("canceled"))
	if err != nil || !canceled {
		t.Fatal(canceled, err)
	}
	return pushes
}

// TestMigrate_Live: what the release before has left, workers find: what waits, what it waits for, and the attempts under
// way, whose workers are gone. What has ended stays as it is. The statements of the release before work until the schema is
// contracted, which has to be asked for, and fail then.
func TestMigrate_Live(t *testing.T) {
	t.Parallel()
	for _, contract := range []bool{false, true} {
		t.Run(fmt.Sprint("contracted: ", contract), func(t *testing.T) {
			t.Parallel()
			b := setupBeside(t, 0)
			pushes := left(t, b)
			m := migrate(t.Context(), b.url, store.MigrateConfig{Contract: contract})
			<-m.done
			if m.err != nil || m.says("sendquota migrate --contract") == contract {
				t.Fatalf("applied %v, %v; it says %q", m.applied, m.err, m.said)
			}
			b.newer(t)
			if got := stateOf(t, b.Store); got != "ok" {
				t.Error(got)
			}
			b.audit(t, nil)
			for recipient, want := range map[string]push.Status{"waits": push.Scheduled, "again": push.Scheduled, "sending": push.Sending, "sent": push.Sent, "canceled": push.Canceled} {
				b.wantStatus(t, push.Push{ID: pushes[recipient], Tenant: b.tenant}, want)
			}
			sending := b.read(t, push.Push{ID: pushes["sending"], Tenant: b.tenant})
			if len(sending.Sends) != 2 || sending.Attempts != 2 || !sending.Sends[1].EndedAt.IsZero() {
				t.Errorf("%+v", sending)
			}
			lost, err := b.Lost(t.Context(), push.Lanes(1), 10)
			if err != nil || len(lost) != 1 || lost[0].Push != pushes["sending"] || lost[0].Number != 2 {
				t.Fatalf("%+v, %v", lost, err)
			}
			f := lost[0].Finish(push.Retry{})
			f.Resolution = push.Resolution{Status: push.Failed, Reason: "lost"}
			if _, err := b.Finish(t.Context(), f); err != nil {
				t.Fatal(err)
			}
			b.finish(t, b.claimed(t, b.read(t, push.Push{ID: pushes["waits"], Tenant: b.tenant})), sent)
			if c := b.claim(t, "again", nil); c.Outcome != booking.Nothing {
				t.Errorf("claimed before its time: %+v", c)
			}
			b.audit(t, nil)

			o, at := b.older(t), time.Now().UTC().Truncate(time.Second)
			id, bookErr := o.book(t.Context(), "late", at, at.Add(time.Hour))
			a, claimErr := o.claim(t.Context(), "late", time.Hour)
			_, cancelErr := o.cancel(t.Context(), pushes["again"])
			for what, err := range map[string]error{"book": bookErr, "claim": claimErr, "cancel": cancelErr} {
				if (err != nil) != contract {
					t.Errorf("the release before may %s: %v", what, err)
				}
			}
			if !contract && a.push != id {
				t.Errorf("claimed %+v, want %s", a, id)
			}
			b.audit(t, nil)
		})
	}
}

// TestMigrate_LiveFill: what a program of the release before changes while its push is put into the table live is found there
// as it is afterwards.
func TestMigrate_LiveFill(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		recipient, sql string
		want           push.Status
	}{
		"canceled": {"waits", olderCancel, push.Canceled},
		"moved": {"waits", `UPDATE pushes SET send_at = send_at + interval '1 hour', next_at = send_at + interval '1 hour', gen = gen + 1
			WHERE id = $1 AND tenant_id = $2`, push.Scheduled},
		"claimed": {"waits", `UPDATE pushes SET status = 'sending', attempts = 1, claim_token = gen_random_uuid(), lease_until = clock_timestamp() + interval '1 hour',
			updated_at = clock_timestamp() WHERE id = $1 AND tenant_id = $2`, push.Sending},
		"finished": {"sending", `UPDATE pushes SET status = 'failed', gen = gen + 1, claim_token = NULL, lease_until = NULL, last_error = 'bad' WHERE id = $1 AND tenant_id = $2`, push.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setupBeside(t, 0)
			pushes := left(t, b)
			if _, err := store.Migrate(t.Context(), b.url, store.MigrateConfig{Files: before(t, "0010")}); err != nil {
				t.Fatal(err)
			}
			tx, err := b.db.Begin(t.Context())
			if err == nil {
				_, err = tx.Exec(t.Context(), row.sql, pushes[row.recipient], b.tenant)
			}
			if err != nil {
				t.Fatal(err)
			}
			m := migrate(t.Context(), b.url, store.MigrateConfig{Wait: 5 * time.Minute})
			eventually(t, "the migration waits for the push", func() bool { return m.says("0010_fill_live.sql: waits for a lock") || m.ended() })
			if err := tx.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			if <-m.done; m.err != nil {
				t.Fatal(m.err)
			}
			b.newer(t)
			b.wantStatus(t, push.Push{ID: pushes[row.recipient], Tenant: b.tenant}, row.want)
			if n := ask[int](t, b.db, `SELECT count(*) FROM pushes p FULL JOIN live l ON l.push_id = p.id
				WHERE (p.status IN ('scheduled', 'sending')) <> (l.push_id IS NOT NULL) OR (p.send_at, p.attempts) <> (l.send_at, l.attempts) OR p.claim_token IS DISTINCT FROM l.token`); n > 0 {
				t.Errorf("of %d pushes the two forms differ", n)
			}
		})
	}
}

// TestMigrate_LiveMillion: the table live is filled from a million pushes that wait and a million that have ended, while both
// releases go on. It is skipped unless SENDQUOTA_MILLION is set, since it takes a minute or two.
func TestMigrate_LiveMillion(t *testing.T) {
	if os.Getenv("SENDQUOTA_MILLION") == "" {
		t.Skip("SENDQUOTA_MILLION is not set")
	}
	b := setupBeside(t, 60)
	b.exec(t, `INSERT INTO pushes (id, tenant_id, recipient_key, recipient, channel, message, requested_send_at, send_at, next_at, expires_at, status)
		SELECT gen_random_uuid(), $1, ('x' || encode(substr(sha256(uuid_send($1) || convert_to(r, 'UTF8')), 1, 8), 'hex'))::bit(64)::bigint, r,
			'log', json_build_object('body', repeat('x', 200)), at, at, at, at + interval '1 day', CASE WHEN i % 2 = 0 THEN 'scheduled' ELSE 'canceled' END
		FROM generate_series(1, 2000000) i, LATERAL (SELECT 'many-' || i % 100000 AS r, date_trunc('second', now()) + interval '1 day' + i * interval '1 second' AS at) p`, b.tenant)
	b.exec(t, `VACUUM ANALYZE pushes`)
	worst, base := time.Duration(0), time.Duration(0)
	o := b.older(t)
	timed := func() (longest time.Duration) {
		for range 50 {
			began := time.Now()
			at := began.UTC().Truncate(time.Second).Add(time.Hour)
			if _, err := o.book(t.Context(), "timed", at, at.Add(time.Hour)); err != nil {
				t.Fatal(err)
			}
			longest = max(longest, time.Since(began))
		}
		return longest
	}
	did, stop := b.start(t, "older", o, 2)
	did(100)
	base = timed()
	began := time.Now()
	m := migrate(t.Context(), b.url, store.MigrateConfig{Wait: 5 * time.Minute})
	for !m.ended() {
		worst = max(worst, timed())
	}
	if m.err != nil {
		t.Fatal(m.err)
	}
	t.Logf("filled after %s; the longest booking took %s, and %s before", time.Since(began), worst, base)
	b.newer(t)
	stop()
	if n := ask[int](t, b.db, bothForms); n > 0 {
		t.Errorf("of %d pushes the two forms differ", n)
	}
	began = time.Now()
	if _, err := store.Migrate(t.Context(), b.url, store.MigrateConfig{Wait: 5 * time.Minute, Contract: true}); err != nil {
		t.Fatal(err)
	}
	t.Logf("contracted after %s", time.Since(began))
	b.audit(t, nil)
}

// TestMigrate_LiveBack: the way back, from each step. The release before finds what waits and what is under way, and no push
// is lost or sent again.
func TestMigrate_LiveBack(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name     string
		contract bool
		to       int64
	}{{"expanded, to the schema before", false, 8}, {"contracted, to the schema before", true, 8}, {"contracted, to the expanded schema", true, 19}} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			b := setupBeside(t, 10)
			old := b.older(t)
			_, stop := b.start(t, "older", old, 2)
			if _, err := store.Migrate(t.Context(), b.url, store.MigrateConfig{Wait: 5 * time.Minute}); err != nil {
				t.Fatal(err)
			}
			st := b.newer(t)
			now, stopNow := b.start(t, "newer", st, 2)
			now(100)
			stop()
			if _, err := store.Migrate(t.Context(), b.url, store.MigrateConfig{Wait: 5 * time.Minute, Contract: row.contract}); err != nil {
				t.Fatal(err)
			}
			now(100)
			if row.to < 9 {
				stopNow()
			}
			at := time.Now().UTC().Truncate(time.Second)
			id, err := st.book(t.Context(), "nobody's", at, at.Add(time.Hour))
			if err != nil {
				t.Fatal(err)
			}
			b.note(id, "nobody's")
			if a, err := st.claim(t.Context(), "nobody's", time.Second); err != nil || a.push != id {
				t.Fatal(a, err) // its worker dies
			}
			b.downBefore(t, row.to+1)
			if row.to < 9 {
				b.downTo(t, row.to)
			}
			before, stop := b.start(t, "older again", old, 2)
			before(200)
			if row.to > 8 {
				now(50)
				stopNow()
				if n := ask[int](t, b.db, bothForms); n > 0 {
					t.Errorf("of %d pushes the two forms differ", n)
				}
			}
			stop()
			if _, err := store.Migrate(t.Context(), b.url, store.MigrateConfig{Wait: 5 * time.Minute, Contract: true}); err != nil {
				t.Fatal(err)
			}
			b.drain(t, st)
		})
	}
}

// downTo takes all migrations behind one back.
func (b *beside) downTo(t *testing.T, version int64) {
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
	if _, err := provider.DownTo(t.Context(), version); err != nil {
		t.Fatal(err)
	}
}
