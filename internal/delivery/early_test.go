package delivery_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
)

// A wake-up that comes before its time, because the queue's clock is ahead, is handled at its time, once for all parts.
// A wake-up for a past time is handled at once only.
func TestWorker_EarlyWakeUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		due := time.Now().Add(time.Minute)
		s, p := &scripted{claims: []booking.Claim{claimed()}, from: due}, &provider{}
		w := setupScripted(t, s, p)
		for part := range 3 {
			if err := w.Handle(t.Context(), push.WakeUp{Lane: all, At: due, Part: part}); err != nil {
				t.Fatal(err)
			}
		}
		handle(t, w)
		time.Sleep(time.Minute - 1)
		if len(p.all()) > 0 {
			t.Fatal("sent before its time")
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		w.Settle()
		if took := p.all(); len(took) != 1 || !took[0].at.Equal(due) {
			t.Errorf("sent %+v, want at %s", took, due)
		}
	})
}
