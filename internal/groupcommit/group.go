// Package groupcommit gathers concurrent calls, so that many share the price of one: a transaction's commit, a network
// round trip.
//
// A call that finds no running group runs at once and alone, in its caller's goroutine. Calls that arrive meanwhile
// wait, and run together as soon as it is done. So the groups are as large as the load makes them, and an idle system
// adds no latency.
package groupcommit

import (
	"context"
	"sync"
	"time"
)

// Group gathers calls to Run. The zero value with Run set is ready for use.
type Group[Req, Res any] struct {
	// Run does the work of several requests and returns as many results in the same order, or an error for all of
	// them.
	Run func(ctx context.Context, reqs []Req) ([]Res, error)
	// Weight of a request against MaxWeight; nil: 1.
	Weight func(Req) int
	// MaxWeight of the requests run together; 0: no bound. A heavier request runs alone.
	MaxWeight int
	// MaxWaiting bounds the weight of waiting requests; beyond it, Go accepts no more. 0: no bound.
	MaxWaiting int
	// Parallel is the number of concurrent groups; 0: one.
	Parallel int
	// Pause is taken after every group, so that the next one is larger. It costs a lone call nothing, and one under
	// load this much at most.
	Pause time.Duration
	// PauseFrom is the minimum number of requests in a group for a Pause after it; 0: any number. So a single caller
	// that calls repeatedly never waits.
	PauseFrom int
	// Alone reports whether one request may have caused an error for all: then each is run alone. nil: never.
	Alone func(error) bool
	// Observe gets the number of requests of each group. nil: ignored.
	Observe func(requests int)

	mu      sync.Mutex
	waiting []*call[Req, Res]
	weighs  int // weight of waiting; counted if MaxWaiting is set
	running int
	idle    chan struct{} // closed when nothing runs any more; nil: no Flush waits
}

type call[Req, Res any] struct {
	req  Req
	res  Res
	err  error
	done chan struct{}
}

// Do runs req together with others and returns its result. It takes no context, because the work is done for others,
// too: Run bounds its time itself.
func (g *Group[Req, Res]) Do(req Req) (Res, error) {
	c := &call[Req, Res]{req: req}
	g.mu.Lock()
	if g.running < max(1, g.Parallel) { // so no call waits
		g.running++
		g.mu.Unlock()
		defer g.handOver()
		g.run([]*call[Req, Res]{c})
		return c.res, c.err
	}
	c.done = make(chan struct{})
	g.wait(c)
	g.mu.Unlock()
	<-c.done
	return c.res, c.err
}

// Go runs req together with others in the background, in the order of the calls to Go if groups are not parallel. The
// first one waits for a Pause, too. Go returns false if there is no room for req.
func (g *Group[Req, Res]) Go(req Req) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.MaxWaiting > 0 && g.weighs >= g.MaxWaiting {
		return false
	}
	g.wait(&call[Req, Res]{req: req})
	if g.running < max(1, g.Parallel) {
		g.running++
		go g.work(g.PauseFrom)
	}
	return true
}

func (g *Group[Req, Res]) wait(c *call[Req, Res]) {
	g.waiting = append(g.waiting, c)
	if g.MaxWaiting > 0 {
		g.weighs += g.weight(c.req)
	}
}

// Flush waits until nothing runs or waits, or returns the error of ctx.
func (g *Group[Req, Res]) Flush(ctx context.Context) error {
	g.mu.Lock()
	if g.running == 0 {
		g.mu.Unlock()
		return nil
	}
	if g.idle == nil {
		g.idle = make(chan struct{})
	}
	idle := g.idle
	g.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// end counts the end of a group.
func (g *Group[Req, Res]) end() {
	if g.running--; g.running == 0 && g.idle != nil {
		close(g.idle)
		g.idle = nil
	}
}

// handOver leaves waiting calls to a worker, after a caller ran a group itself.
func (g *Group[Req, Res]) handOver() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.pauseAfter(1) > 0 || len(g.waiting) > 0 {
		go g.work(1)
	} else {
		g.end()
	}
}

// work runs groups until no call waits. before is the size of the group before the first one.
func (g *Group[Req, Res]) work(before int) {
	for {
		time.Sleep(g.pauseAfter(before))
		calls := g.next()
		if len(calls) == 0 {
			return
		}
		g.run(calls)
		before = len(calls)
	}
}

// pauseAfter returns the pause after a group of requests.
func (g *Group[Req, Res]) pauseAfter(requests int) time.Duration {
	if requests < g.PauseFrom {
		return 0
	}
	return g.Pause
}

// next takes the calls of one group off the queue, or ends the worker.
func (g *Group[Req, Res]) next() []*call[Req, Res] {
	g.mu.Lock()
	defer g.mu.Unlock()
	n, weight := 0, 0
	for ; n < len(g.waiting); n++ {
		weight += g.weight(g.waiting[n].req)
		if g.MaxWeight > 0 && weight > g.MaxWeight && n > 0 {
			break
		}
	}
	if n == 0 {
		g.end()
		return nil
	}
	calls := g.waiting[:n:n]
	if g.MaxWaiting > 0 {
		for _, c := range calls {
			g.weighs -= g.weight(c.req)
		}
	}
	g.waiting = g.waiting[n:]
	return calls
}

func (g *Group[Req, Res]) weight(req Req) int {
	if g.Weight == nil {
		return 1
	}
	return g.Weight(req)
}

// run works on one group and wakes its callers.
func (g *Group[Req, Res]) run(calls []*call[Req, Res]) {
	if g.Observe != nil {
		g.Observe(len(calls))
	}
	reqs := make([]Req, len(calls))
	for i, c := range calls {
		reqs[i] = c.req
	}
	results, err := g.Run(context.Background(), reqs)
	if err != nil && len(calls) > 1 && g.Alone != nil && g.Alone(err) {
		for i := range calls {
			g.run(calls[i : i+1])
		}
		return
	}
	for i, c := range calls {
		if c.err = err; err == nil {
			c.res = results[i]
		}
		if c.done != nil {
			close(c.done)
		}
	}
}
