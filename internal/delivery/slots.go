package delivery

import (
	"math"
	"sync/atomic"
)

// slots bound the attempts that a worker makes at a time: a bulkhead. Each channel has a few slots of its own, so that
// providers that hang leave room for all others. All channels share the rest.
type slots struct {
	own  int          // of each channel
	free atomic.Int64 // of the shared ones
}

// newSlots shares so many slots among channels. The only channel of a worker may use them all, and more: what finds no
// slot waits for one.
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

// left is how many more slots a channel may use that uses so many.
func (s *slots) left(used int) int {
	free := int(s.free.Load())
	if used < s.own {
		return s.own - used + max(free, 0)
	}
	return free
}

// change notes that a channel uses more slots or fewer.
func (s *slots) change(from, to int) {
	if d := max(from-s.own, 0) - max(to-s.own, 0); d != 0 {
		s.free.Add(int64(d))
	}
}
