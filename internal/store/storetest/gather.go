package storetest

import (
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/store/pg"
)

// Gathering is a bundle with a store that records the sizes of its groups.
type Gathering struct {
	*Bundle
	Mu    sync.Mutex
	Sizes []int
}

func Gather(t *testing.T, b *Bundle) *Gathering {
	g := &Gathering{Bundle: b}
	g.Store = OpenURL(t, g.URL, pg.Config{Lanes: 1, Observe: func(_ string, size int) {
		g.Mu.Lock()
		defer g.Mu.Unlock()
		g.Sizes = append(g.Sizes, size)
	}})
	return g
}

// Together makes calls while the test blocks the store's worker of that kind with a lock, so that they share a group.
// It reports whether they did.
func (g *Gathering) Together(t *testing.T, lock string, args []any, holdUp, calls []func()) bool {
	t.Helper()
	g.Exec(t, `BEGIN`)
	g.Exec(t, lock, args...)
	var wg sync.WaitGroup
	for i, call := range holdUp {
		wg.Go(call)
		g.Waiting(t, i+1)
	}
	g.Mu.Lock()
	g.Sizes = nil
	g.Mu.Unlock()
	for _, call := range calls {
		wg.Go(call)
	}
	for range 100 { // a call that is refused before gets into no group
		if inGroups() >= len(holdUp)+len(calls) {
			break
		}
		time.Sleep(time.Millisecond)
	}
	g.Exec(t, `COMMIT`)
	wg.Wait()
	g.Mu.Lock()
	defer g.Mu.Unlock()
	return len(g.Sizes) > 0 && g.Sizes[0] == len(calls)
}

// inGroups counts the goroutines that the caller's goroutine has started and that are in a group of package groupcommit.
func inGroups() (n int) {
	buf := make([]byte, 4<<20)
	stacks := strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n")
	me, _, _ := strings.Cut(stacks[0], " [") // goroutine 7 [running]: the caller's comes first
	for _, stack := range stacks[1:] {
		if strings.Contains(stack, "groupcommit.(*Group") && strings.Contains(stack+"\n", " in "+me+"\n") {
			n++
		}
	}
	return n
}
