package store_test

import (
	"testing"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store"
)

// TestFinish_TwoPrograms: two programs finish attempts of one push at the same time, in either order, and one of the
// attempts was delivered. The push is not sent again.
func TestFinish_TwoPrograms(t *testing.T) {
	t.Parallel()
	lost := booking.Finish{Outcome: push.Unknown, Error: "lost", Reaped: true, Resolution: push.Resolution{Status: push.Scheduled, Reason: "lost"}}
	for _, row := range []struct {
		name    string
		retried bool // the answer is about the first attempt, and a second one is under way
		other   booking.Finish
	}{
		{"beside the reaper", false, lost},
		{"beside the next attempt, refused", true, tryAgain},
		{"beside the next attempt, unknown", true, lostTrack},
	} {
		for _, newsFirst := range []bool{false, true} {
			t.Run(row.name, func(t *testing.T) {
				t.Parallel()
				b := setup(t)
				other := &bundle{Store: openURL(t, b.url, store.Config{}), tenant: b.tenant}
				p := b.booked(t, "anna", 0)
				delivered := b.claimed(t, p)
				current := delivered
				if row.retried {
					b.finish(t, delivered, lost)
					current = b.claimed(t, p)
				}
				ends := []func(){
					func() { b.finish(t, current, row.other) },
					func() { other.finish(t, delivered, sent) },
				}
				if newsFirst {
					ends[0], ends[1] = ends[1], ends[0]
				}
				b.inOrder(t, p, ends)
				b.wantStatus(t, p, push.Sent)
			})
		}
	}
}

// inOrder starts calls that want to change a push, in this order, and lets them go on together.
func (b *bundle) inOrder(t *testing.T, p push.Push, calls []func()) {
	t.Helper()
	tx, err := b.db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{`SELECT FROM live WHERE push_id = $1 FOR UPDATE`, `SELECT FROM sends WHERE push_id = $1 FOR UPDATE`} {
		if _, err := tx.Exec(t.Context(), sql, p.ID); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan struct{})
	for i, call := range calls {
		go func() { call(); done <- struct{}{} }()
		b.waiting(t, i+1)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range calls {
		<-done
	}
}
