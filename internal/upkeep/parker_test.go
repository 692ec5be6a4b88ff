package upkeep_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/upkeep"
)

// parking has pauses with a number of portions to park.
type parking struct {
	mu       sync.Mutex
	portions map[uuid.UUID]int
	calls    []uuid.UUID
	near     []int64 // of the last call
	fails    int     // of the first calls
}

func (p *parking) ParkDue(_ context.Context, pause uuid.UUID, near []int64) (parked int, more bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls, p.near = append(p.calls, pause), near
	if p.fails--; p.fails >= 0 {
		return 0, false, errors.New("no connection")
	}
	p.portions[pause]--
	return 1, p.portions[pause] > 0, nil
}

// made lists the calls.
func (p *parking) made() []uuid.UUID {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.calls)
}

// TestParker: what is asked for is parked until nothing is left, and then not looked at any more. Many claims of one pause cost
// one look. After an error a claim asks again.
func TestParker(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const between = time.Minute + 100*time.Millisecond // the loop does not wake at the same time
		large, small := uuid.New(), uuid.New()
		p := &parking{portions: map[uuid.UUID]int{large: 5, small: 1}, fails: 1}
		parker := upkeep.NewParker(p, quiet)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- parker.Run(ctx) }()
		time.Sleep(between)
		if n := len(p.made()); n != 0 {
			t.Errorf("%d calls without need", n)
		}
		parker.Ask(large, 7)
		time.Sleep(between)
		for i := range 100 {
			parker.Ask(large, int64(push.Shards*i+7))
			parker.Ask(small, 8)
		}
		time.Sleep(time.Minute)
		count := func(pause uuid.UUID) (n int) {
			for range slices.DeleteFunc(p.made(), func(one uuid.UUID) bool { return one != pause }) {
				n++
			}
			return n
		}
		if count(large) != 1+5 || count(small) != 1 {
			t.Errorf("%d and %d calls", count(large), count(small))
		}
		cancel()
		<-done
		if len(p.near) != 1 {
			t.Errorf("the last call is for %v", p.near)
		}
	})
}
