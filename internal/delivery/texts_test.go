package delivery_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/channel"
	"github.com/sendquota/sendquota/internal/pace"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/sms"
)

// TestTexts_TimeSlots checks that a text takes a time slot for each of its segments, over two workers together, and that its
// attempt keeps their number.
func TestTexts_TimeSlots(t *testing.T) {
	t.Parallel()
	speed := pace.Speed{Every: 25 * time.Millisecond, Burst: 1, Most: 10}
	f := setupWorkers(t, 2, speed)
	f.sms.texts = sms.Size{Encoding: sms.UCS2, Characters: 160, Segments: 3}
	f.sms.answer = func(context.Context, push.Push, int) channel.Result {
		return channel.Result{Outcome: push.Delivered, Segments: 3}
	}
	var recipients []string
	for i := range 14 {
		recipients = append(recipients, fmt.Sprint("person ", i))
	}
	began := time.Now()
	booked := f.due(t, "sms", recipients...)
	eventually(t, "all are sent", func() bool { return len(f.sms.all()) == 14 })
	// Before the workers know how long texts are, each may have taken one slot too early.
	for i, at := range f.sms.times() {
		if least := time.Duration(3*i-4) * speed.Every; at.Sub(began) < least {
			t.Errorf("text %d was sent after %s, want at least %s", i, at.Sub(began), least)
		}
	}
	f.stop()
	p, err := f.store.Push(t.Context(), f.tenant, booked[0].ID)
	if err != nil || len(p.Sends) != 1 || p.Sends[0].Segments != 3 {
		t.Errorf("%+v, %v", p.Sends, err)
	}
}
