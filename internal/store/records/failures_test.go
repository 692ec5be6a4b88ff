package records_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/store/storetest"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/stats"
	"github.com/sendquota/sendquota/internal/store"
)

// sentAfter stores sent pushes, a second apart, in the table alone. With freed they are marked as pushes that were not
// sent.
func (b *bundle) sentAfter(t testing.TB, at time.Time, n int, freed bool) {
	t.Helper()
	b.ForgeMany(t, `INSERT INTO pushes (id, tenant_id, shard, recipient_key, recipient, channel, message, requested_send_at, send_at, next_at, expires_at, status, freed)
		SELECT gen_random_uuid(), $1, i & 255, i, 'r' || i, 'log', '{}', s, s, s, s + interval '1 day', 'sent', $4
		FROM generate_series(1, $3::int) i, LATERAL (SELECT $2::timestamptz + i * interval '1 second' AS s) s`, b.TenantID, at, n, freed)
}

// TestFailures_AmongMany checks that failed pushes are found, and listed, among any number of sent pushes, without
// reading these. Of more failures than it reads, it groups the latest.
func TestFailures_AmongMany(t *testing.T) {
	t.Parallel()
	b := setupNew(t)
	const others, more = 5_000, 100_010
	at := time.Now().Add(-48 * time.Hour).Truncate(time.Second)
	b.sentAfter(t, at, 3, false)
	b.Exec(t, `UPDATE pushes SET status = 'failed', freed = true, last_error = 'bad' WHERE recipient IN ('r1', 'r2')`)
	b.Exec(t, `UPDATE pushes SET status = 'canceled', freed = true WHERE recipient = 'r3'`)
	b.sentAfter(t, at.Add(time.Minute), others, false)
	b.Exec(t, `ANALYZE pushes`)
	q := stats.FailureQuery{From: at.Add(-time.Hour), Until: at.Add(48 * time.Hour)}
	n := b.RowsRead(t, store.Config{}, func() {
		f, err := b.Failures(t.Context(), b.TenantID, q)
		if err != nil || len(f.Groups) != 1 || f.Groups[0].Pushes != 2 || f.Groups[0].Reason != "bad" || !f.Since.Equal(q.From) {
			t.Errorf("%+v, %v", f, err)
		}
		for status, want := range map[push.Status]int{push.Failed: 2, push.Canceled: 1, push.Expired: 0} {
			page, err := b.List(t.Context(), b.TenantID, push.Filter{Status: status, From: q.From}, push.Position{}, 50)
			if err != nil || len(page.Pushes) != want || page.Next != nil {
				t.Errorf("%s: %d pushes, next %v, %v", status, len(page.Pushes), page.Next, err)
			}
		}
	})
	if n > 500 {
		t.Errorf("%d rows were read", n)
	}
	b.sentAfter(t, at.Add(time.Hour*2), more, true)
	b.Store = storetest.OpenURL(t, b.URL, store.Config{})
	f, err := b.Failures(t.Context(), b.TenantID, q)
	if want := at.Add(2*time.Hour + (more-100_000+1)*time.Second); err != nil || len(f.Groups) != 0 || !f.Since.Equal(want) {
		t.Errorf("of too many: %+v, want all since %s, %v", f, want, err)
	}
}

// TestFinish_HotUpdates checks that the end of a push changes no indexed column, so that no index is written.
func TestFinish_HotUpdates(t *testing.T) {
	t.Parallel()
	b := setupNew(t)
	for i, read := range []string{`n_tup_upd`, `n_tup_hot_upd`} {
		p := b.Booked(t, fmt.Sprint("r", i), 0)
		c := b.Claimed(t, p)
		if n := b.Counted(t, store.Config{}, `SELECT sum(`+read+`)::int FROM pg_stat_user_tables WHERE relname ~ '^pushes'`, func() { b.MustFinish(t, c, storetest.Sent) }); n != 1 {
			t.Errorf("%s: %d, want 1", read, n)
		}
		b.Store = storetest.OpenURL(t, b.URL, store.Config{})
	}
}
