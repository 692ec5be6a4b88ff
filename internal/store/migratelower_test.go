package store_test

import (
	"errors"
	"io/fs"
	"slices"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/migrations"
)

// contractedBefore are the numbers of an earlier version, whose schema was contracted before others with lower numbers came.
var contractedBefore = []string{
	"0001", "0002", "0003", "0004", "0005", "0006", "0007", "0008", "0009", "0010", "0011", "0015", "0020", "0021", "0022", "0023", "0024", "0025",
}

// TestMigrate_LowerNumbers: a database that an earlier version has contracted gets the migrations with lower numbers, too, and
// keeps what is in it. Until then it is not ready.
func TestMigrate_LowerNumbers(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	b.Close()
	b.exec(t, `DROP SCHEMA public CASCADE; CREATE SCHEMA public`)
	earlier := fstest.MapFS{}
	for _, number := range contractedBefore {
		names, err := fs.Glob(migrations.FS, number+"_*.sql")
		if err != nil || len(names) != 1 {
			t.Fatal(number, names, err)
		}
		text, err := fs.ReadFile(migrations.FS, names[0])
		if err != nil {
			t.Fatal(err)
		}
		earlier[names[0]] = &fstest.MapFile{Data: text}
	}
	if _, err := store.Migrate(t.Context(), b.url, store.MigrateConfig{Files: earlier, Contract: true}); err != nil {
		t.Fatal(err)
	}
	b.tenant = uuid.New()
	b.exec(t, `INSERT INTO tenants (id, name) VALUES ($1, 'acme')`, b.tenant)
	id, key, at := uuid.New(), push.RecipientKey(b.tenant, "anna"), began.Add(time.Hour)
	b.exec(t, `WITH p AS (
			INSERT INTO pushes (id, tenant_id, recipient_key, recipient, channel, message, requested_send_at, send_at, next_at, expires_at, status, plan, idempotency_id, idempotency_hash)
			VALUES ($1, $2, $3, 'anna', 'log', '{}', $4, $4, $4, $4::timestamptz + interval '1 day', 'scheduled', 1, gen_random_uuid(), 'hash') RETURNING *
		)
		INSERT INTO live (push_id, tenant_id, recipient_key, channel, send_at, next_at, expires_at, plan, bulk, phase)
		SELECT id, tenant_id, recipient_key, channel, send_at, send_at, expires_at, plan, false, 0 FROM p`, id, b.tenant, key, at)
	var unready *store.UnreadyError
	if err := openURL(t, b.url, store.Config{}).Ready(t.Context()); !errors.As(err, &unready) || unready.State() != "not_migrated" {
		t.Errorf("before: %v", err)
	}
	if _, err := store.Migrate(t.Context(), b.url, store.MigrateConfig{Wait: 5 * time.Minute}); err != nil { // while programs of the earlier version are at work
		t.Fatal(err)
	}
	b.exec(t, `INSERT INTO live (push_id, tenant_id, recipient_key, channel, send_at, next_at, expires_at, plan, bulk, phase)
		SELECT gen_random_uuid(), tenant_id, recipient_key, channel, send_at + interval '1 hour', send_at, expires_at, plan, false, 0 FROM pushes`)
	if n := ask[int](t, b.db, `SELECT count(*) FROM live WHERE shard = recipient_key & 255`); n != 2 {
		t.Errorf("%d rows have their shard", n)
	}
	b.exec(t, `DELETE FROM live WHERE push_id NOT IN (SELECT id FROM pushes)`)
	if _, err := store.Migrate(t.Context(), b.url, store.MigrateConfig{Contract: true}); err != nil {
		t.Fatal(err)
	}
	b.Store = openURL(t, b.url, store.Config{})
	if err := b.Ready(t.Context()); err != nil {
		t.Errorf("afterwards: %v", err)
	}
	if p, err := b.Push(t.Context(), b.tenant, id); err != nil || p.Status != push.Scheduled || !p.SendAt.Equal(at) {
		t.Errorf("%+v, %v", p, err)
	}
	if v := book(t, b.Store, threeRules, draft(b.tenant, "anna", time.Hour+time.Second)); v.Outcome != booking.NoPlace {
		t.Errorf("beside it: %+v", v)
	}
	b.audit(t, threeRules)
}

// TestMigrate_ExpandsBehind: a migration that expands the schema is applied although others before it contract the schema, and
// are left.
func TestMigrate_ExpandsBehind(t *testing.T) {
	t.Parallel()
	b := setupBeside(t, 1)
	at := time.Now().UTC().Truncate(time.Second)
	if _, err := b.older(t).book(t.Context(), "anna", at, at.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	files := fstest.MapFS{"0999_behind.sql": {Data: []byte("-- +goose Up\nCREATE TABLE behind ();\n-- +goose Down\nDROP TABLE behind;\n")}}
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
	applied, err := store.Migrate(t.Context(), b.url, store.MigrateConfig{Files: files})
	if err != nil || !slices.Contains(applied, "0999_behind.sql") || slices.Contains(applied, "0020_contract_live.sql") {
		t.Fatalf("applied %v, %v", applied, err)
	}
	applied, err = store.Migrate(t.Context(), b.url, store.MigrateConfig{Files: files, Contract: true})
	if err != nil || !slices.Contains(applied, "0020_contract_live.sql") {
		t.Fatalf("applied %v, %v", applied, err)
	}
}
