package httpapi

import (
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/bulkhead"
	"github.com/sendquota/sendquota/internal/push"
)

// TestCompute_BesideNeighbours: a tenant that has much to compute does so on one processor, half of the time, while
// another tenant asks. Alone it goes on at once.
func TestCompute_BesideNeighbours(t *testing.T) {
	const work = 30 * time.Millisecond
	for _, row := range []struct {
		name       string
		neighbours *bulkhead.Neighbours[uuid.UUID]
		takes      time.Duration // for four pieces of work, which two processors could do
	}{
		{"beside another tenant", &bulkhead.Neighbours[uuid.UUID]{}, 7 * work},
		{"alone", nil, 2 * work},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				loud := uuid.New()
				row.neighbours.Seen(loud)
				row.neighbours.Seen(uuid.New())
				shared := &computing{turns: bulkhead.New[uuid.UUID](4, 2), neighbours: row.neighbours}
				began := time.Now() // on the clock of the bubble
				var all sync.WaitGroup
				for range 4 {
					all.Go(func() {
						c := &call{r: httptest.NewRequest("GET", "/", nil), computing: shared, caller: push.Caller{Tenant: loud}}
						if err := c.compute(func() error { time.Sleep(work); return nil }); err != nil {
							t.Error(err)
						}
					})
				}
				all.Wait()
				if takes := time.Since(began); takes != row.takes {
					t.Errorf("it took %s, not %s", takes, row.takes)
				}
			})
		})
	}
}
