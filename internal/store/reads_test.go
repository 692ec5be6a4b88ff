package store_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/store"
)

// TestStore_RowsRead: no statement reads more than a few rows among 20,000: pushes ahead and sends behind of one
// recipient, and pushes of other recipients. Due pushes are looked for every second.
func TestStore_RowsRead(t *testing.T) {
	t.Parallel()
	for name, work := range map[string]func(t *testing.T, b *bundle){
		"promote": func(t *testing.T, b *bundle) { b.promote(t, 500) },
		"due":     func(t *testing.T, b *bundle) { _, _ = b.Due(t.Context(), 500, 0, nil) },
		"expire":  func(t *testing.T, b *bundle) { _, _ = b.Expire(t.Context(), 500) },
		"backlog": func(t *testing.T, b *bundle) { _, _, _ = b.Backlog(t.Context()) },
		"lost":    func(t *testing.T, b *bundle) { _, _ = b.Lost(t.Context(), 500) },
		"claim":   func(t *testing.T, b *bundle) { b.claim(t, "anna", threeRules) },
		"book":    func(t *testing.T, b *bundle) { book(t, b.Store, threeRules, draft(b.tenant, "anna", time.Hour)) },
		"bookings": func(t *testing.T, b *bundle) {
			_, _, _ = b.Bookings(t.Context(), quota.Recipient{Tenant: b.tenant, ID: "anna"}, began, began.Add(24*time.Hour), booking.MaxRead)
		},
		"pending": func(t *testing.T, b *bundle) {
			if n, err := b.Pending(t.Context(), b.tenant, 21); err != nil || n != 21 {
				t.Errorf("%d pending, %v", n, err)
			}
		},
		"pending of another": func(t *testing.T, b *bundle) {
			if n, err := b.Pending(t.Context(), uuid.New(), 21); err != nil || n != 0 {
				t.Errorf("%d pending, %v", n, err)
			}
		},
		"recipients": func(t *testing.T, b *bundle) {
			if n, err := b.Recipients(t.Context(), b.tenant, booking.DayOf(began), 21); err != nil || n != 1 {
				t.Errorf("%d recipients, %v", n, err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			for _, recipient := range []string{`'anna'`, `'r' || i`} {
				b.exec(t, `INSERT INTO pushes (id, tenant_id, recipient_key, recipient, channel, message, requested_send_at, send_at, next_at, expires_at)
					SELECT gen_random_uuid(), $1, $2, `+recipient+`, 'log', '{}', s, s, s, s + interval '1 day'
					FROM generate_series(1, 5000) i, LATERAL (SELECT $3::timestamptz + interval '3 days' + i * interval '1 minute' AS s) s`,
					b.tenant, push.RecipientKey(b.tenant, "anna"), began)
			}
			b.exec(t, `UPDATE pushes SET recipient_key = hashtext(recipient) WHERE recipient <> 'anna'`)
			b.exec(t, `INSERT INTO pushes (id, tenant_id, recipient_key, recipient, channel, message, requested_send_at, send_at, next_at, expires_at, status)
				SELECT gen_random_uuid(), $1, -i, 's' || i, 'log', '{}', s, s, s, s + interval '1 day', 'sent'
				FROM generate_series(1, 5000) i, LATERAL (SELECT $2::timestamptz - interval '2 days' - i * interval '1 minute' AS s) s`, b.tenant, began)
			b.exec(t, `INSERT INTO sends (push_id, attempt, tenant_id, recipient_key, recipient, channel, started_at, lease_until, ended_at, outcome)
				SELECT gen_random_uuid(), 1, $1, $2, 'anna', 'log', s, s, s, 'delivered'
				FROM generate_series(1, 5000) i, LATERAL (SELECT $3::timestamptz - interval '2 days' - i * interval '1 minute' AS s) s`,
				b.tenant, push.RecipientKey(b.tenant, "anna"), began)
			b.booked(t, "anna", 0)
			b.exec(t, `ANALYZE`)
			b.Close() // its connections report what they did
			const read = `SELECT coalesce(sum(idx_tup_read), 0) + (SELECT coalesce(sum(seq_tup_read), 0) FROM pg_stat_user_tables) FROM pg_stat_user_indexes`
			const scans = `SELECT coalesce(sum(idx_scan), 0) FROM pg_stat_user_indexes`
			eventually(t, "all that was done so far is counted", func() bool {
				return ask[int](t, b.db, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'sendquota'`) == 0
			})
			b.exec(t, `SELECT pg_stat_force_next_flush()`)
			b.exec(t, `SELECT pg_stat_reset()`)

			b.Store = openURL(t, b.url, store.Config{})
			work(t, b)
			b.Close()
			eventually(t, "what it did is counted", func() bool { return ask[int](t, b.watch, scans) > 0 })
			if n := ask[int](t, b.watch, read); n > 100 {
				t.Errorf("%d rows were read", n)
			}
		})
	}
}
