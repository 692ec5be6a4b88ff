package storetest

import (
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
)

func (b *Bundle) MustAhead(t testing.TB, lane push.Lane, from time.Time, horizon time.Duration) push.Ahead {
	t.Helper()
	all, err := b.Ahead(t.Context(), []push.CountedLane{{Lane: lane, Until: from}}, horizon)
	if err != nil {
		t.Fatal(err)
	}
	a := all[0]
	if a.Until.Sub(a.Now) != horizon || a.Now.Location() != time.UTC {
		t.Errorf("from %s until %s, with a horizon of %s", a.Now, a.Until, horizon)
	}
	return a
}

// EveryDue asks for pushes through the channel "log" in all lanes.
func EveryDue(most int) booking.DueOrder {
	return booking.DueOrder{Lane: push.Lanes(1)[0], Channels: []booking.DueChannel{{Name: "log", Most: most}}, Most: most}
}

// WantDue returns the due pushes of an order, and fails unless their number is want.
func (b *Bundle) WantDue(t testing.TB, o booking.DueOrder, want int) []booking.Due {
	t.Helper()
	due, now, err := b.Due(t.Context(), o)
	if err != nil || len(due) != want || now.IsZero() {
		t.Fatalf("%d are due at %s, want %d; %v", len(due), now, want, err)
	}
	return due
}

// Forge stores normal pushes of n recipients, in a burst or not, due some time ago or ahead (negative), as a large batch would.
func (b *Bundle) Forge(t testing.TB, n int, channel string, burst bool, ago time.Duration) {
	t.Helper()
	rank := push.RankOf(push.Normal, burst)
	b.ForgeMany(t, `WITH p AS (
			INSERT INTO pushes (id, tenant_id, shard, recipient_key, recipient, channel, message, requested_send_at, send_at, next_at, expires_at)
			SELECT gen_random_uuid(), $1, key & 255, key, 'r' || i, $3, '{}', at, at, at, at + interval '1 day'
			FROM generate_series(1, $2) i, hashint8extended(hashtext($3::text || $4::smallint::text), i) key,
				LATERAL (SELECT date_trunc('second', statement_timestamp() - $5::interval) AS at) a
			RETURNING *
		)
		INSERT INTO live (recipient_key, send_at, next_at, expires_at, plan, phase, rank, push_id, tenant_id, channel, shard)
		SELECT recipient_key, send_at, next_at, expires_at, plan, $4::smallint, $4, id, tenant_id, channel, recipient_key & 255 FROM p`,
		b.TenantID, n, channel, int16(rank), ago)
}
