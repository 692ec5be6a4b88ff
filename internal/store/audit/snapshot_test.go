package audit_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/store/storetest"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
)

// TestPass_Snapshots checks that an audit keeps no snapshot between two chunks, so that it never holds up vacuum,
// however large the table is.
func TestPass_Snapshots(t *testing.T) {
	t.Parallel()
	const recipients, pushes = 100, 3_000
	b := setupAlone(t)
	b.Exec(t, `
		INSERT INTO pushes (id, tenant_id, recipient_key, recipient, channel, message, requested_send_at, send_at, next_at, expires_at, status, created_at, updated_at)
		SELECT gen_random_uuid(), $1, ('x' || encode(substr(sha256(uuid_send($1) || convert_to('r' || i, 'UTF8')), 1, 8), 'hex'))::bit(64)::bigint, 'r' || i,
			'log', '{}', at, at, at, at + interval '1 day', 'scheduled', now(), now()
		FROM generate_series(1, $2::int) i, LATERAL (SELECT date_trunc('second', now()) + i * interval '1 second' AS at) p`, b.TenantID, pushes)
	p := b.beginAudit(t, storetest.PerMinute, recipients)
	seen := map[string]bool{} // the transactions of chunks, by their begins
	type result struct {
		chunk booking.AuditChunk
		own   bool
		err   error
	}
	read, chunks := 0, 0
	for ; !p.Over(); chunks++ {
		b.Exec(t, `BEGIN`)
		b.Exec(t, `LOCK TABLE live IN ACCESS EXCLUSIVE MODE`) // the chunk waits, so that its transaction can be seen
		next := make(chan result, 1)
		go func() {
			var r result
			r.chunk, r.own, r.err = p.Next(t.Context(), nil)
			next <- r
		}()
		b.Waiting(t, 1)
		seen[storetest.Ask[string](t, b.Watch, `SELECT min(xact_start)::text FROM pg_stat_activity
			WHERE datname = current_database() AND application_name = 'sendquota' AND wait_event_type = 'Lock'`)] = true
		b.Exec(t, `COMMIT`)
		r := <-next
		if r.err != nil || !r.own || r.chunk.Rows > 2*recipients {
			t.Fatal(r)
		}
		read += r.chunk.Rows
		if n := storetest.Ask[int](t, b.DB, `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND application_name = 'sendquota' AND (backend_xmin IS NOT NULL OR xact_start IS NOT NULL)`); n > 0 {
			t.Fatalf("%d transactions are open between two chunks", n)
		}
	}
	if read != 2*pushes { // in live, and in pushes
		t.Errorf("it read %d rows", read)
	}
	if len(seen) != chunks || chunks < pushes/recipients {
		t.Errorf("%d transactions read %d chunks, want one for each, and %d at least", len(seen), chunks, pushes/recipients)
	}
}

// TestPass_TooLong checks that a slow chunk is given up and smaller ones follow, until a recipient that is too
// slow even alone is skipped. All others are audited, and the hours of the skipped recipient are read again.
// [store.Store.AuditSince] skips no recipient.
func TestPass_TooLong(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	other := uuid.New()
	b.Exec(t, `INSERT INTO tenants (id, name) VALUES ($1, 'other')`, other)
	// The bad recipient has the first key, and the others are far behind it.
	named := func(tenant uuid.UUID, name string, from, until int64) string {
		for i := 0; ; i++ {
			if n := fmt.Sprint(name, i); push.RecipientKey(tenant, n) >= from && push.RecipientKey(tenant, n) < until {
				return n
			}
		}
	}
	bad := b.sentAgo(t, named(b.TenantID, "bad ", math.MinInt64, math.MinInt64/8*7), 10*time.Hour)
	var keys []int64
	for _, from := range []int64{math.MinInt64 / 4 * 3, math.MinInt64 / 8 * 5, math.MinInt64 / 2, math.MinInt64 / 4} {
		name := named(other, "good ", from, from-math.MinInt64/8)
		keys = append(keys, push.RecipientKey(other, name))
		p := b.sentAgo(t, name, 10*time.Hour)
		b.Exec(t, `UPDATE pushes SET tenant_id = $1, recipient_key = $2, attempts = 2 WHERE id = $3`, other, push.RecipientKey(other, name), p.ID)
		b.Exec(t, `UPDATE sends SET tenant_id = $1, recipient_key = $2 WHERE push_id = $3`, other, push.RecipientKey(other, name), p.ID)
	}
	// Reading the tenant of the bad push takes longer than any limit. The limit itself is an hour, which no other chunk takes.
	b.Exec(t, `ALTER TABLE tenants RENAME TO tenants_kept`)
	b.Exec(t, `CREATE FUNCTION slow(tenant uuid) RETURNS bool LANGUAGE plpgsql AS $$ BEGIN
		IF current_setting('statement_timeout')::interval >= interval '1 hour' AND EXISTS (SELECT FROM pushes p WHERE p.tenant_id = tenant AND p.recipient LIKE 'bad %') THEN
			RAISE query_canceled;
		END IF; RETURN true; END $$`)
	b.Exec(t, `CREATE VIEW tenants AS SELECT * FROM tenants_kept WHERE slow(id)`)

	first := push.RecipientKey(b.TenantID, bad.Recipient)
	want := 1 // the chunk that skips the recipient
	for last := keys[len(keys)-1]; last > first; want++ {
		quarter, next := first+(last-first)/4, first
		for _, k := range keys {
			if k <= quarter {
				next = k
			}
		}
		last = next
	}
	p := b.beginPlan(t, booking.AuditPlan{Policy: storetest.PerMinute, Back: 24 * time.Hour, Ahead: time.Hour}, 1000)
	p.LimitChunks(time.Hour)
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
	if found := p.Result().Found["attempts"]; skipped != bad.ID || tooLong != want || found == nil || found.Violations != len(keys) {
		t.Errorf("%d chunks took too long, want %d; %s was left out, want %s; found %+v", tooLong, want, skipped, bad.ID, p.Result().Found)
	}
	if closed := storetest.Ask[bool](t, b.DB, `SELECT closed FROM audited WHERE slice = date_trunc('hour', (SELECT send_at FROM pushes WHERE id = $1))`, bad.ID); closed {
		t.Error("the hour of what was left out is closed")
	}

	// A separate audit waits for that recipient.
	b.Exec(t, `UPDATE pushes SET attempts = 2 WHERE id = $1`, bad.ID)
	p = b.AuditSince(storetest.PerMinute, booking.Kept{}, time.Time{})
	p.CutAt([]int64{first, first + 1})
	p.LimitChunks(time.Hour)
	if found := storetest.FinishAudit(t, p); len(found) != 2*len(keys)+2 { // by two checks each
		t.Errorf("it found %+v", found)
	}
}
