package schedule

import (
	"testing"
	"time"

	"github.com/google/uuid"
)

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
