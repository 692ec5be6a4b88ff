package schedule

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/bulkhead"
)

// TestPermits_RestBesideNeighbours: a tenant that reads recipients with very many bookings leaves half of the time to
// its neighbours. Alone, it continues at once.
func TestPermits_RestBesideNeighbours(t *testing.T) {
	for _, row := range []struct {
		name       string
		neighbours *bulkhead.Neighbours[uuid.UUID]
		rest       time.Duration
	}{
		{"beside another tenant", &bulkhead.Neighbours[uuid.UUID]{}, 30 * time.Millisecond},
		{"alone", nil, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				loud, calm, all := uuid.New(), uuid.New(), newPermits(row.neighbours)
				row.neighbours.Seen(loud)
				row.neighbours.Seen(calm)
				take := func() *permit {
					one := &permit{}
					if err := one.take(t.Context(), all, loud); err != nil {
						t.Fatal(err)
					}
					return one
				}
				first := take()
				time.Sleep(30 * time.Millisecond) // on the clock of the bubble
				ended := time.Now()
				first.end()
				take().end()
				if rest := time.Since(ended); rest != row.rest {
					t.Errorf("it rested for %s, not %s", rest, row.rest)
				}
			})
		})
	}
}
