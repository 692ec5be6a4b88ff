package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
)

// Overtake commits a booking while another one of the same recipient waits for the lock: it has the lock and an
// uncommitted row when the other one begins.
func (b *Bundle) Overtake(t *testing.T, at time.Time, other func()) {
	t.Helper()
	key := push.RecipientKey(b.TenantID, "anna")
	b.Exec(t, `BEGIN`)
	b.Exec(t, `SELECT pg_advisory_xact_lock($1)`, key)
	b.Exec(t, `INSERT INTO pushes (id, tenant_id, recipient_key, recipient, channel, message, requested_send_at, send_at, next_at, expires_at)
		VALUES ($1, $2, $3, 'anna', 'log', '{}', $4, $4, $4, $5)`, uuid.New(), b.TenantID, key, at, at.Add(time.Hour))
	done := make(chan struct{})
	go func() {
		defer close(done)
		other()
	}()
	Eventually(t, "the other booking waits for the lock", func() bool {
		return Ask[int](t, b.Watch, `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock' AND wait_event = 'advisory'`) == 1
	})
	b.Exec(t, `COMMIT`)
	<-done
}

// InOneStatement is a deliberately wrong booking: it takes the lock and reads the neighbours in one statement, with a
// snapshot that is older than its wait for the lock.
func InOneStatement(ctx context.Context, db *pgx.Conn, d booking.Draft) (booked bool, err error) {
	p := d.Push
	tag, err := db.Exec(ctx, `
		WITH locked AS MATERIALIZED (SELECT pg_advisory_xact_lock($1))
		INSERT INTO pushes (id, tenant_id, recipient_key, recipient, channel, message, requested_send_at, send_at, next_at, expires_at)
		SELECT $2, $3, $1, $4, 'log', '{}', $5::timestamptz, $5, $5, $5 + interval '1 hour' FROM locked
		WHERE NOT EXISTS (SELECT FROM pushes WHERE recipient_key = $1
			AND send_at > $5 - interval '1 minute' AND send_at < $5 + interval '1 minute')`,
		push.RecipientKey(p.Tenant, p.Recipient), p.ID, p.Tenant, p.Recipient, p.SendAt)
	return tag.RowsAffected() == 1, err
}
