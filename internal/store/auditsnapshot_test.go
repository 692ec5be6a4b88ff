package store_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/testenv"
)

// TestAuditPass_Snapshots: between two chunks of an audit there is no snapshot that keeps vacuum from anything, and a chunk
// reads no more rows than it is allowed, however large the table is.
func TestAuditPass_Snapshots(t *testing.T) {
	t.Parallel()
	const rows, pushes = 500, 20_000
	b := setup(t)
	b.exec(t, `
		INSERT INTO pushes (id, tenant_id, recipient_key, recipient, channel, message, requested_send_at, send_at, next_at, expires_at, status, created_at, updated_at)
		SELECT gen_random_uuid(), $1, ('x' || encode(substr(sha256(uuid_send($1) || convert_to('r' || i, 'UTF8')), 1, 8), 'hex'))::bit(64)::bigint, 'r' || i,
			'log', '{}', at, at, at, at + interval '1 day', 'scheduled', now(), now()
		FROM generate_series(1, $2::int) i, LATERAL (SELECT date_trunc('second', now()) + i * interval '1 second' AS at) p`, b.tenant, pushes)
	p := b.beginAudit(t, perMinute, rows)
	seen := map[string]bool{}
	ctx, stop := context.WithCancel(t.Context())
	watched := make(chan error, 1)
	watch := testenv.Connect(t, b.url)
	go func() { // what holds a snapshot while chunks are read, by the transaction that holds it
		for ctx.Err() == nil {
			rows, _ := watch.Query(ctx, `SELECT xact_start::text FROM pg_stat_activity
				WHERE datname = current_database() AND application_name = 'sendquota' AND backend_xmin IS NOT NULL`)
			for rows.Next() {
				var began string
				if err := rows.Scan(&began); err == nil {
					seen[began] = true
				}
			}
			rows.Close()
			time.Sleep(time.Millisecond)
		}
		watched <- nil
	}()
	read := 0
	for !p.Over() {
		c, own, err := p.Next(t.Context(), nil)
		if err != nil || !own || c.Rows > rows {
			t.Fatal(c, own, err)
		}
		read += c.Rows
		if n := ask[int](t, b.db, `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND application_name = 'sendquota' AND (backend_xmin IS NOT NULL OR xact_start IS NOT NULL)`); n > 0 {
			t.Fatalf("%d transactions are open between two chunks", n)
		}
	}
	stop()
	<-watched
	if read != 2*pushes { // in live, and in pushes
		t.Errorf("it read %d rows", read)
	}
	if len(seen) < 10 {
		t.Errorf("it held %d snapshots, for %d chunks", len(seen), 2*pushes/rows)
	}
}

// TestAuditPass_TooLong: a chunk that takes too long is given up, and smaller ones come instead, until what takes too long
// even alone is left out. All else is audited, and the hour of what was left out is read again.
func TestAuditPass_TooLong(t *testing.T) {
	t.Parallel()
	b := setup(t)
	bad := b.sentAgo(t, "bad", 10*time.Hour)
	for _, recipient := range []string{"a", "b", "c", "d", "e"} {
		b.sentAgo(t, recipient, 10*time.Hour)
	}
	broken := b.sentAgo(t, "broken", 10*time.Hour)
	b.exec(t, `UPDATE pushes SET attempts = 2 WHERE id = $1`, broken.ID)
	// To look up the tenant of the bad push takes a minute.
	b.exec(t, `ALTER TABLE tenants RENAME TO tenants_kept`)
	b.exec(t, `CREATE FUNCTION slow(tenant uuid) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN
		IF EXISTS (SELECT FROM pushes p WHERE p.tenant_id = tenant AND p.recipient = 'bad') THEN PERFORM pg_sleep(60); END IF; RETURN true; END $$`)
	b.exec(t, `CREATE VIEW tenants AS SELECT * FROM tenants_kept WHERE slow(id)`)
	other := uuid.New()
	b.exec(t, `INSERT INTO tenants_kept (id, name) VALUES ($1, 'other')`, other)
	b.exec(t, `UPDATE pushes SET tenant_id = $1, recipient_key = ('x' || encode(substr(sha256(uuid_send($1) || convert_to(recipient, 'UTF8')), 1, 8), 'hex'))::bit(64)::bigint WHERE id <> $2`, other, bad.ID)
	b.exec(t, `UPDATE sends SET tenant_id = p.tenant_id, recipient_key = p.recipient_key FROM pushes p WHERE p.id = push_id`)

	p, err := b.BeginAudit(t.Context(), uuid.New(), booking.AuditPlan{Policy: perMinute, Back: 24 * time.Hour, Ahead: time.Hour})
	if err != nil || p == nil {
		t.Fatal(p, err)
	}
	tooLong, skipped := 0, uuid.Nil
	for !p.Over() {
		c, own, err := p.Next(t.Context(), nil)
		if err != nil || !own {
			t.Fatal(c, own, err)
		}
		if c.TooLong {
			tooLong++
		}
		if c.Skipped != uuid.Nil {
			skipped = c.Skipped
		}
	}
	if found := p.Result().Found["attempts"]; skipped != bad.ID || tooLong < 3 || found == nil || found.Violations != 1 {
		t.Errorf("%d chunks took too long, %s was left out, want %s; found %+v", tooLong, skipped, bad.ID, p.Result().Found)
	}
	if closed := ask[bool](t, b.db, `SELECT closed FROM audited WHERE slice = date_trunc('hour', (SELECT send_at FROM pushes WHERE id = $1))`, bad.ID); closed {
		t.Error("the hour of what was left out is closed")
	}
}
