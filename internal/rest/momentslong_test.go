package rest

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
)

// TestMoments_LongCounts checks that a count that takes long is repeated so rarely that it runs for at most a tenth of the time, and at
// least every ten seconds.
func TestMoments_LongCounts(t *testing.T) {
	for took, most := range map[time.Duration]int{10 * time.Millisecond: 60, 500 * time.Millisecond: 12, 3 * time.Second: 6} {
		synctest.Test(t, func(t *testing.T) {
			counts := 0
			m := NewMoments(time.Now, func(context.Context, uuid.UUID) (int, error) {
				time.Sleep(took)
				counts++
				return counts, nil
			})
			for began := time.Now(); time.Since(began) < time.Minute; time.Sleep(100 * time.Millisecond) {
				if _, err := m.Of(t.Context(), uuid.Nil); err != nil {
					t.Fatal(err)
				}
			}
			if counts > most || counts < most*3/4 {
				t.Errorf("a count of %s ran %d times in a minute, want %d", took, counts, most)
			}
		})
	}
}
