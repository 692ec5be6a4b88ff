package store_test

import (
	"io/fs"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/internal/testenv"
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

// TestMigrate_Live: what the release before has left, workers find: what waits, what it waits for, and the attempts under
// way, whose workers are gone. What has ended stays as it is. The statements of the release before fail.
func TestMigrate_Live(t *testing.T) {
	t.Parallel()
	url := testenv.Postgres(t)
	b := &bundle{url: url, db: connect(t, url), watch: connect(t, url), tenant: uuid.New()}
	b.exec(t, `DROP SCHEMA public CASCADE; CREATE SCHEMA public`)
	if _, err := store.Migrate(t.Context(), url, store.MigrateConfig{Files: before(t, "0008")}); err != nil {
		t.Fatal(err)
	}
	b.exec(t, `INSERT INTO tenants (id, name) VALUES ($1, 'tenant')`, b.tenant)
	const insert = `INSERT INTO pushes (id, tenant_id, recipient_key, recipient, channel, message, requested_send_at, send_at, next_at, expires_at)
		VALUES ($1, $2, $3, $4, 'log', '{}', $5, $5, $6, $7)`
	pushes := map[string]uuid.UUID{}
	old := func(recipient string, nextIn time.Duration) {
		id, at := uuid.New(), time.Now().UTC().Truncate(time.Second).Add(-time.Minute)
		pushes[recipient] = id
		b.exec(t, insert, id, b.tenant, push.RecipientKey(b.tenant, recipient), recipient, at, at.Add(nextIn), at.Add(time.Hour))
	}
	attempt := func(recipient string, number int, ended string) {
		b.exec(t, `INSERT INTO sends (push_id, attempt, tenant_id, recipient_key, recipient, channel, started_at, lease_until, ended_at, outcome)
			SELECT id, $2::int, tenant_id, recipient_key, recipient, channel, send_at + $2::int * interval '2 seconds', send_at + $2::int * interval '2 seconds' + interval '1 second',
				CASE WHEN $3 <> '' THEN send_at + $2::int * interval '2 seconds' + interval '1 second' END, nullif($3, '')
			FROM pushes WHERE id = $1`, pushes[recipient], number, ended)
	}
	old("waits", 0)
	old("again", time.Hour-time.Minute)
	attempt("again", 1, "refused")
	b.exec(t, `UPDATE pushes SET attempts = 1, last_error = 'busy' WHERE recipient = 'again'`)
	old("sending", 0)
	attempt("sending", 1, "refused")
	attempt("sending", 2, "")
	b.exec(t, `UPDATE pushes SET status = 'sending', attempts = 2, claim_token = gen_random_uuid(), lease_until = send_at + interval '5 seconds' WHERE recipient = 'sending'`)
	old("sent", 0)
	attempt("sent", 1, "delivered")
	b.exec(t, `UPDATE pushes SET status = 'sent', attempts = 1 WHERE recipient = 'sent'`)
	old("canceled", 0)
	b.exec(t, `UPDATE pushes SET status = 'canceled' WHERE recipient = 'canceled'`)

	if _, err := store.Migrate(t.Context(), url, store.MigrateConfig{}); err != nil {
		t.Fatal(err)
	}
	b.Store = openURL(t, url, store.Config{})
	b.audit(t, nil)
	for recipient, want := range map[string]push.Status{"waits": push.Scheduled, "again": push.Scheduled, "sending": push.Sending, "sent": push.Sent, "canceled": push.Canceled} {
		b.wantStatus(t, push.Push{ID: pushes[recipient], Tenant: b.tenant}, want)
	}
	sending := b.read(t, push.Push{ID: pushes["sending"], Tenant: b.tenant})
	if len(sending.Sends) != 2 || sending.Attempts != 2 || !sending.Sends[1].EndedAt.IsZero() {
		t.Errorf("%+v", sending)
	}
	lost, err := b.Lost(t.Context(), push.Lanes(1), 10)
	if err != nil || len(lost) != 1 || lost[0].Push.ID != pushes["sending"] || lost[0].Attempt != 2 {
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

	for _, sql := range []string{
		`INSERT INTO pushes (id, tenant_id, recipient_key, recipient, channel, message, requested_send_at, send_at, next_at, expires_at) SELECT gen_random_uuid(), tenant_id, recipient_key, recipient, channel, message, requested_send_at, send_at, next_at, expires_at FROM pushes`,
		`UPDATE pushes SET status = 'canceled', gen = gen + 1, updated_at = clock_timestamp() WHERE status = 'scheduled'`,
		`UPDATE pushes SET status = 'sending', claim_token = gen_random_uuid() WHERE status = 'scheduled'`,
	} {
		if _, err := b.db.Exec(t.Context(), sql); err == nil {
			t.Errorf("the release before may still %s", sql)
		}
	}
}
