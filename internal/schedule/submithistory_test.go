package schedule

import (
	"testing"
	"time"

	"github.com/google/uuid"
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

// TestBursts_Note: the first pushes of a tenant for a second are prompt, the others a burst. Other seconds and tenants are
// not affected, and the memory is bounded.
func TestBursts_Note(t *testing.T) {
	s := newBursts()
	loud, quiet, at := uuid.New(), uuid.New(), time.Now()
	for i := range 3 * promptShare {
		if got := s.note(loud, at); got != (i >= promptShare) {
			t.Fatalf("push %d is of a burst: %v", i, got)
		}
	}
	if s.note(quiet, at) || s.note(loud, at.Add(time.Second)) {
		t.Error("another tenant's or second's push is of a burst")
	}
	for i := range rememberedSeconds - 10 {
		s.note(quiet, at.Add(time.Duration(i)*time.Minute))
	}
	if !s.note(loud, at) {
		t.Error("the tenant is forgotten")
	}
	for i := range 3 * rememberedSeconds {
		s.note(quiet, at.Add(time.Duration(i)*time.Second))
		if n := len(s.newer) + len(s.older); n > 2*rememberedSeconds {
			t.Fatalf("%d seconds are remembered", n)
		}
	}
}
