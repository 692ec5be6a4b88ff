package store

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/bulkhead"
)

// TestOwnBookings_Rest: beside other tenants a turn is kept for as long again as it took, but not for longer than
// longestRest. Alone it ends at once.
func TestOwnBookings_Rest(t *testing.T) {
	for _, row := range []struct {
		took, rest time.Duration
		alone      bool
	}{
		{took: 60 * time.Millisecond, rest: 60 * time.Millisecond},
		{took: 5 * time.Second, rest: longestRest},
		{took: 60 * time.Millisecond, alone: true},
	} {
		synctest.Test(t, func(t *testing.T) {
			o := &ownBookings{turns: bulkhead.New[uuid.UUID](ownTurns, ownTenantTurns)}
			loud, calm := uuid.New(), uuid.New()
			acquire := func(units int64) *bulkhead.Loan[uuid.UUID] {
				turn, err := o.turns.Acquire(t.Context(), loud, units)
				if err != nil {
					t.Fatal(err)
				}
				return turn
			}
			turn, began := acquire(ownTenantTurns), time.Now()
			time.Sleep(row.took) // on the clock of the bubble
			o.neighbours.Seen(loud)
			if !row.alone {
				o.neighbours.Seen(calm)
			}
			ended := time.Now()
			o.rest(turn, began)
			acquire(ownTenantTurns).Release()
			if rest := time.Since(ended); rest != row.rest {
				t.Errorf("%+v: it rested for %s", row, rest)
			}
		})
	}
}
