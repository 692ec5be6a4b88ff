package delivery

import (
	"math"
	"sync"
	"sync/atomic"
)

// slots limits the concurrent attempts of a worker: a bulkhead. Each channel has a few slots of its own, so that
// providers that hang leave room for all others. All channels share the rest.
//
// The channels that tenants have made share other slots. Of these, a tenant uses at most twice as many as it leaves free, so
// that there are some for the next tenant.
type slots struct {
	own    int           // of each channel
	free   *atomic.Int64 // of the shared ones
	tenant *atomic.Int64 // slots that the tenant's channels use; nil: the channels are the operator's
	queue  *slotQueue    // of the tenants' channels
}

// slotQueue are the queues of tenants' channels that wait for a slot, in their order: thousands of them may.
type slotQueue struct {
	mu      sync.Mutex
	waiting []*channelQueue
	in      map[*channelQueue]bool
}

// add has a queue check its room when a slot becomes free and no other queue has waited longer.
func (w *slotQueue) add(q *channelQueue) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.in[q] {
		w.in[q] = true
		w.waiting = append(w.waiting, q)
	}
}

// wake has the first n queues check their room.
func (w *slotQueue) wake(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n = min(n, len(w.waiting))
	for _, q := range w.waiting[:n] {
		delete(w.in, q)
		q.signal()
	}
	clear(w.waiting[:n])
	w.waiting = w.waiting[n:]
}

// tenantShare is the number of slots that a tenant may use for each one that it leaves free.
const tenantShare = 2

// newSlots divides slots among channels. If a worker has one channel only, it may use them all, and more: an attempt
// without a slot waits for one.
func newSlots(all, channels int) *slots {
	s := &slots{free: &atomic.Int64{}}
	if channels < 2 {
		s.free.Store(math.MaxInt32)
		return s
	}
	s.own = max(all/(4*channels), 1)
	s.free.Store(int64(max(all-channels*s.own, 0)))
	return s
}

// newTenantSlots returns the slots of the channels that a tenant has made.
func newTenantSlots(free *atomic.Int64, queue *slotQueue) *slots {
	return &slots{free: free, tenant: &atomic.Int64{}, queue: queue}
}

// left returns the number of additional slots that a channel may use.
func (s *slots) left(used int) int {
	free := int(s.free.Load())
	if s.tenant != nil {
		// After n more, it uses tenant + n and leaves free - n.
		return min(free, (tenantShare*free-int(s.tenant.Load())+tenantShare)/(tenantShare+1))
	}
	if used < s.own {
		return s.own - used + max(free, 0)
	}
	return free
}

// change updates the number of slots that a channel uses.
func (s *slots) change(from, to int) {
	if s.tenant != nil {
		s.tenant.Add(int64(to - from))
	}
	d := max(from-s.own, 0) - max(to-s.own, 0)
	if s.free.Add(int64(d)); d > 0 && s.queue != nil {
		s.queue.wake(d)
	}
}
