package delivery

import (
	"math"
	"sync/atomic"
)

// places are those at which a worker delivers. Each channel has a few of its
// own, so that providers that hang leave room for all others; the rest is for
// whoever comes.
type places struct {
	own  int          // of each channel
	free atomic.Int64 // of the others
}

// newPlaces shares so many places among channels. A channel that is alone may
// use them all, and more: who does not find a place waits for one.
func newPlaces(all, channels int) *places {
	p := &places{}
	if channels < 2 {
		p.free.Store(math.MaxInt32)
		return p
	}
	p.own = max(all/(4*channels), 1)
	p.free.Store(int64(max(all-channels*p.own, 0)))
	return p
}

// left is how many more a channel may use that uses so many.
func (p *places) left(used int) int {
	free := int(p.free.Load())
	if used < p.own {
		return p.own - used + max(free, 0)
	}
	return free
}

// change notes that a channel uses more or fewer.
func (p *places) change(from, to int) {
	if d := max(from-p.own, 0) - max(to-p.own, 0); d != 0 {
		p.free.Add(int64(d))
	}
}
