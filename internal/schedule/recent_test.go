package schedule

import (
	"testing"
	"time"
)

// TestRecent_Bounds: a recipient is remembered for at least the time that was asked for, and not for ever; and however
// many there are, only so many are kept.
func TestRecent_Bounds(t *testing.T) {
	now := time.Now()
	r := newRecent(func() time.Time { return now })
	r.most = 100
	if r.seen(1) || !r.seen(1) {
		t.Fatal("known before, or forgotten at once")
	}
	for range 3 {
		now = now.Add(recentTime)
		if !r.seen(1) {
			t.Fatal("one that comes again and again is forgotten")
		}
	}
	if now = now.Add(recentTime); r.seen(2) {
		t.Fatal("known before")
	}
	if now = now.Add(recentTime); r.seen(1) {
		t.Error("remembered for ever")
	}
	for key := range int64(1000) {
		r.seen(key)
		if kept := len(r.newer) + len(r.older); kept > 2*r.most {
			t.Fatalf("%d recipients are kept", kept)
		}
	}
	if !r.seen(999) || r.seen(500) {
		t.Error("the last one is forgotten, or one long before it is not")
	}
}
