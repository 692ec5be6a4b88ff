package schedule

import (
	"testing"
	"time"
)

// TestSubmitHistory_Bounds: a recipient is remembered for at least historyTime, but not forever, and the number of
// recipients is bounded.
func TestSubmitHistory_Bounds(t *testing.T) {
	now := time.Now()
	r := newSubmitHistory(func() time.Time { return now })
	r.most = 100
	for i, want := range []history{never, once, often, often} {
		if got := r.note(1); got != want {
			t.Fatalf("noted %d times: history %d", i, got)
		}
	}
	for range 3 {
		now = now.Add(historyTime)
		if r.note(1) != often {
			t.Fatal("a frequent recipient is forgotten")
		}
	}
	r.record(1, refused)
	if now = now.Add(historyTime); r.note(1) != refused {
		t.Fatal("a refusal is forgotten")
	}
	if r.record(1, often); r.note(1) != often {
		t.Fatal("a refusal is remembered in spite of a push that was booked")
	}
	if now = now.Add(historyTime); r.note(2) != never || !r.known(2) || !r.known(1) || r.known(3) {
		t.Fatal("known differs from the noted recipients")
	}
	if now = now.Add(historyTime); r.note(1) != never {
		t.Error("remembered forever")
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
