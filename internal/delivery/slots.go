package delivery

import (
	"math"
	"sync/atomic"
)

// slots limits the concurrent attempts of a worker: a bulkhead. Each channel has a few slots of its own, so that
// providers that hang leave room for all others. All channels share the rest.
type slots struct {
	own  int          // of each channel
	free atomic.Int64 // of the shared ones
}

// newSlots divides slots among channels. If a worker has one channel only, it may use them all, and more: an attempt
// without a slot waits for one.
func newSlots(all, channels int) *slots {
	s := &slots{}
	if channels < 2 {
		s.free.Store(math.MaxInt32)
		return s
	}
	s.own = max(all/(4*channels), 1)
	s.free.Store(int64(max(all-channels*s.own, 0)))
	return s
}

// left returns the number of additional slots that a channel may use.
func (s *slots) left(used int) int {
	free := int(s.free.Load())
	if used < s.own {
		return s.own - used + max(free, 0)
	}
	return free
}

// change updates the number of slots that a channel uses.
func (s *slots) change(from, to int) {
	if d := max(from-s.own, 0) - max(to-s.own, 0); d != 0 {
		s.free.Add(int64(d))
	}
}
