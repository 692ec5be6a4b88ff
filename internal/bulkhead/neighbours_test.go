package bulkhead

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestNeighbours_Rest: beside other tenants a loan is kept for as long again as its work took, but not for longer than
// longestRest. Alone it ends at once.
func TestNeighbours_Rest(t *testing.T) {
	for _, row := range []struct {
		took, rest time.Duration
		alone      bool
	}{
		{took: 60 * time.Millisecond, rest: 60 * time.Millisecond},
		{took: 5 * time.Second, rest: longestRest},
		{took: 60 * time.Millisecond, alone: true},
	} {
		synctest.Test(t, func(t *testing.T) {
			const loud, calm = "loud", "calm"
			turns, neighbours := New[string](4, 2), &Neighbours[string]{}
			acquire := func() *Loan[string] {
				turn, err := turns.Acquire(t.Context(), loud, 2)
				if err != nil {
					t.Fatal(err)
				}
				return turn
			}
			turn, began := acquire(), time.Now()
			time.Sleep(row.took) // on the clock of the bubble
			neighbours.Seen(loud)
			if !row.alone {
				neighbours.Seen(calm)
			}
			ended := time.Now()
			neighbours.Rest(turn, began)
			acquire().Release()
			if rest := time.Since(ended); rest != row.rest {
				t.Errorf("%+v: it rested for %s", row, rest)
			}
		})
	}
}
