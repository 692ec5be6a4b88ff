package audit

import (
	"math"
	"time"
)

// apart is how far two hours are from each other to be read one after the other, and not at once.
const apart = 24 * time.Hour

// walk is where a pass is, and how large its chunks are. It goes through all recipients by their keys, once for each
// stretch of time, the latest first.
type walk struct {
	Spans []stretch // of send times, all that the pass goes through
	Left  int       // how many of these are not read yet; those of a stretch are read at once
	Begun bool      // Ahead is known
	Ahead []int64   `json:",omitempty"` // keys of recipients for whom something is under way, or forgotten, before its time
	Key   int64     // the first of the next chunk
	Step  uint64    // how many keys that has
}

// stretch is a stretch of time.
type stretch struct{ Since, Until time.Time }

// stretch returns the spans that are read at once.
func (w walk) stretch() []stretch {
	first := w.Left - 1
	for first > 0 && w.Spans[first].Since.Sub(w.Spans[first-1].Until) < apart {
		first--
	}
	return w.Spans[first:w.Left]
}

// latest reports whether the walk is in the latest stretch.
func (w walk) latest() bool { return w.Left == len(w.Spans) }

// pass moves the walk behind a key.
func (w *walk) pass(last int64) {
	if w.Key = last + 1; last == math.MaxInt64 {
		w.Key = math.MinInt64
		w.Left -= len(w.stretch())
	}
}

func (w walk) over() bool { return w.Left == 0 }
