package schedule

import (
	"testing"
	"time"

	"github.com/google/uuid"
)

// TestBursts_Bulk: the first pushes of a tenant for a second are prompt, the others bulk. Other seconds and tenants are
// not affected, and the memory is bounded.
func TestBursts_Bulk(t *testing.T) {
	s := newBursts()
	loud, quiet, at := uuid.New(), uuid.New(), time.Now()
	for i := range 3 * promptShare {
		if got := s.bulk(loud, at); got != (i >= promptShare) {
			t.Fatalf("push %d is bulk: %v", i, got)
		}
	}
	if s.bulk(quiet, at) || s.bulk(loud, at.Add(time.Second)) {
		t.Error("another tenant's or second's push is bulk")
	}
	for i := range rememberedSeconds - 10 {
		s.bulk(quiet, at.Add(time.Duration(i)*time.Minute))
	}
	if !s.bulk(loud, at) {
		t.Error("the tenant is forgotten")
	}
	for i := range 3 * rememberedSeconds {
		s.bulk(quiet, at.Add(time.Duration(i)*time.Second))
		if n := len(s.newer) + len(s.older); n > 2*rememberedSeconds {
			t.Fatalf("%d seconds are remembered", n)
		}
	}
}
