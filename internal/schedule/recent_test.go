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
	for i, want := range []history{never, once, often, often} {
		if got := r.note(1); got != want {
			t.Fatalf("noted %d times, it is known as %d", i, got)
		}
	}
	for range 3 {
		now = now.Add(recentTime)
		if r.note(1) != often {
			t.Fatal("one that comes again and again is forgotten")
		}
	}
	r.record(1, refused)
	if now = now.Add(recentTime); r.note(1) != refused {
		t.Fatal("a refusal is forgotten")
	}
	if r.record(1, often); r.note(1) != often {
		t.Fatal("a refusal is remembered in spite of a push that was booked")
	}
	if now = now.Add(recentTime); r.note(2) != never || !r.known(2) || !r.known(1) || r.known(3) {
		t.Fatal("what is known is not what was noted")
	}
	if now = now.Add(recentTime); r.note(1) != never {
		t.Error("remembered for ever")
	}
	for key := range int64(1000) {
		r.note(key)
		if kept := len(r.newer) + len(r.older); kept > 2*r.most {
			t.Fatalf("%d recipients are kept", kept)
		}
	}
	if r.note(999) == never || r.note(500) != never {
		t.Error("the last one is forgotten, or one long before it is not")
	}
}
