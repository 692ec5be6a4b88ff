package delivery_test

import (
	"errors"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/push"
)

// A queue whose clock is ahead must send a wake-up again, else the push would wait until it
// is armed anew. A wake-up for a time that has passed is not sent again.
func TestWorker_EarlyWakeUp(t *testing.T) {
	t.Parallel()
	d := setup(t, nil)
	p := d.book(t, "anna", "log", thisSecond().Add(time.Minute))
	w := d.wakeUp("anna")
	w.At = p.SendAt
	var early push.ComeAgain
	if err := d.Handle(t.Context(), w); !errors.As(err, &early) || early.In > time.Minute || early.In < time.Until(w.At) {
		t.Errorf("%v", err)
	}
	w.At = thisSecond()
	if err := d.Handle(t.Context(), w); err != nil {
		t.Errorf("%v", err)
	}
	if got := d.read(t, p.ID); got.Status != push.Scheduled || len(got.Sends) != 0 {
		t.Errorf("%+v", got)
	}
}
