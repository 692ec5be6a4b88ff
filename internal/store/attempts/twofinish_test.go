package attempts_test

import (
	"testing"

	"github.com/sendquota/sendquota/internal/store/storetest"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store"
)

// TestFinish_TwoPrograms checks that a push is not sent again if two programs finish two attempts at the same time, in
// either order, and one of the attempts was delivered.
func TestFinish_TwoPrograms(t *testing.T) {
	t.Parallel()
	lost := booking.Finish{Outcome: push.Unknown, Error: "lost", Reaped: true, Resolution: push.Resolution{Status: push.Scheduled, Reason: "lost"}}
	for _, row := range []struct {
		name    string
		retried bool // the finish is of the first attempt, and a second one is under way
		other   booking.Finish
	}{
		{"beside the reaper", false, lost},
		{"beside the next attempt, refused", true, storetest.TryAgain},
		{"beside the next attempt, unknown", true, storetest.LostTrack},
	} {
		for _, newsFirst := range []bool{false, true} {
			t.Run(row.name, func(t *testing.T) {
				t.Parallel()
				b := setup(t)
				other := &bundle{&storetest.Bundle{Store: storetest.OpenURL(t, b.URL, store.Config{}), TenantID: b.TenantID}}
				p := b.Booked(t, "anna", 0)
				delivered := b.Claimed(t, p)
				current := delivered
				if row.retried {
					b.MustFinish(t, delivered, lost)
					current = b.Claimed(t, p)
				}
				ends := []func(){
					func() { b.MustFinish(t, current, row.other) },
					func() { other.MustFinish(t, delivered, storetest.Sent) },
				}
				if newsFirst {
					ends[0], ends[1] = ends[1], ends[0]
				}
				b.inOrder(t, p, ends)
				b.WantStatus(t, p, push.Sent)
			})
		}
	}
}

// inOrder starts calls that change a push in this order behind a lock, and then releases the lock.
func (b *bundle) inOrder(t *testing.T, p push.Push, calls []func()) {
	t.Helper()
	tx, err := b.DB.Begin(t.Context())
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
		b.Waiting(t, i+1)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range calls {
		<-done
	}
}
