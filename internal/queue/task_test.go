package queue

import (
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/push"
)

// TestWakeUp_Payload: other releases read it, so it stays as it is.
func TestWakeUp_Payload(t *testing.T) {
	t.Parallel()
	w := push.WakeUp{Lane: push.Lane{First: 64, Last: 127}, At: time.UnixMilli(1_800_000_000_100).UTC(), Part: 2, In: time.Hour}
	if got, want := string(writeWakeUp(w)), `{"first":64,"last":127,"at":1800000000100,"part":2}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got, want := taskID(w), "1800000000100:64-127:2"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestWakeUp_NeverEarlier: a time between two milliseconds becomes the later one.
func TestWakeUp_NeverEarlier(t *testing.T) {
	t.Parallel()
	for _, between := range []time.Duration{0, 1, time.Millisecond - 1} {
		w := push.WakeUp{At: time.UnixMilli(1_800_000_000_100).Add(between)}
		got, err := readWakeUp(writeWakeUp(w))
		if late := got.At.Sub(w.At); err != nil || late < 0 || late >= time.Millisecond {
			t.Errorf("%s became %s: %v", w.At, got.At, err)
		}
	}
}
