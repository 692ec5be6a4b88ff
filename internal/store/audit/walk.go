package audit

import (
	"math"
	"time"
)

// apart is the smallest gap between two hours that are read one after the other instead of together.
const apart = 24 * time.Hour

// walk is the position of a pass and the size of its chunks. The walk visits all recipients in the order of their
// keys, once for each stretch of time, the latest stretch first.
type walk struct {
	Spans []stretch // all send times that the pass covers
	Left  int       // number of spans that are not read yet; spans of one stretch are read together
	Begun bool      // Ahead is known
	Ahead []int64   `json:",omitempty"` // keys of recipients with later send times that have attempts under way or overdue pushes
	Key   int64     // first key of the next chunk
	Step  uint64    // number of keys in the next chunk
}

// stretch is a range of time. Until is exclusive.
type stretch struct{ Since, Until time.Time }

// stretch returns the spans that are read together next.
func (w walk) stretch() []stretch {
	first := w.Left - 1
	for first > 0 && w.Spans[first].Since.Sub(w.Spans[first-1].Until) < apart {
		first--
	}
	return w.Spans[first:w.Left]
}

// latest reports whether the walk is in the latest stretch.
func (w walk) latest() bool { return w.Left == len(w.Spans) }

// pass moves the walk past a key.
func (w *walk) pass(last int64) {
	if w.Key = last + 1; last == math.MaxInt64 {
		w.Key = math.MinInt64
		w.Left -= len(w.stretch())
	}
}

func (w walk) over() bool { return w.Left == 0 }
