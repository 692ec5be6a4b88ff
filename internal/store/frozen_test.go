package store_test

import (
	"errors"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store"
)

// TestPromote_FrozenProgram: the lock of a frozen promoter goes over to another one. The frozen one gets an error when
// it wakes, and then goes on.
func TestPromote_FrozenProgram(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.booked(t, "anna", time.Minute)
	frozen := openURL(t, b.url, store.Config{Timeout: 2 * time.Second})
	asleep, awake, done := make(chan struct{}, 1), make(chan struct{}), make(chan error, 1)
	go func() {
		_, err := frozen.Promote(t.Context(), 2*time.Minute, time.Minute, 10, nil, func([]push.WakeUp) error {
			asleep <- struct{}{}
			<-awake
			return nil
		})
		done <- err
	}()
	<-asleep
	eventually(t, "another promotes", func() bool { return len(b.promote(t, 10)) == 1 })
	close(awake)
	if err := <-done; !errors.Is(err, push.ErrUnavailable) { // it is much too late
		t.Error(err)
	}
	if _, err := frozen.Promote(t.Context(), 2*time.Minute, time.Minute, 10, nil, func([]push.WakeUp) error { return nil }); err != nil {
		t.Errorf("the next time: %v", err)
	}
}
