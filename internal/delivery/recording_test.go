package delivery_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
)

// unrecorded is a store with due recipients whose attempts are recorded only when the test continues.
type unrecorded struct {
	noOwn
	due    []booking.Due
	record chan struct{}
}

// PausedNow answers that nothing is paused.
func (u *unrecorded) PausedNow(context.Context, push.Push) (bool, error) { return false, nil }

func (u *unrecorded) Due(_ context.Context, o booking.DueOrder) (due []booking.Due, now time.Time, err error) {
	if len(o.Channels) == 0 {
		return nil, time.Now(), nil
	}
	n := min(o.Most, len(u.due))
	due, u.due = u.due[:n], u.due[n:]
	return due, time.Now(), nil
}

func (u *unrecorded) ClaimAll(ctx context.Context, orders []booking.ClaimOrder) (claims []booking.Claim, err error) {
	for range orders {
		c := claimed()
		c.StartedAt, c.LeaseUntil = time.Now(), time.Now().Add(lease)
		claims = append(claims, c)
	}
	return claims, nil
}

func (u *unrecorded) Claim(context.Context, booking.ClaimOrder) (booking.Claim, error) {
	return booking.Claim{}, nil
}

func (u *unrecorded) Finish(context.Context, booking.Finish) (more bool, err error) {
	<-u.record
	return false, nil
}

// TestWorker_SlotsWhileRecording: an attempt that is being recorded leaves its slot to the next one, unless four times
// as many as there are slots are being recorded.
func TestWorker_SlotsWhileRecording(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u, p := &unrecorded{record: make(chan struct{})}, &provider{}
		for key := range int64(9) {
			u.due = append(u.due, booking.Due{RecipientKey: key, Channel: "log"})
		}
		w := setupStore(t, u, p)
		handled := make(chan error, 1)
		go func() { handled <- w.Handle(t.Context(), push.WakeUp{Lane: all}) }()
		synctest.Wait()
		if n := len(p.all()); n != 5 {
			t.Errorf("%d were sent with one slot, while four are recorded", n)
		}
		u.record <- struct{}{}
		synctest.Wait()
		if n := len(p.all()); n != 6 {
			t.Errorf("%d were sent when the first was recorded", n)
		}
		close(u.record)
		if err := <-handled; err != nil {
			t.Error(err)
		}
		w.Settle()
		if n := len(p.all()); n != 9 {
			t.Errorf("%d of 9 were sent", n)
		}
	})
}
