package audit

import (
	"math"
	"strings"
	"time"
)

// apart is the smallest gap between two hours that are read one after the other instead of together.
const apart = 24 * time.Hour

// auditSlice is the unit of send times that is closed as a whole.
const auditSlice = time.Hour

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

// farAhead is later than any attempt.
var farAhead = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// hours lists the beginnings of the hours in stretches.
func hours(spans []stretch) (all []time.Time) {
	for _, s := range spans {
		for h := s.Since; h.Before(s.Until); h = h.Add(auditSlice) {
			all = append(all, h)
		}
	}
	return all
}

// multirange formats stretches as a tstzmultirange.
func multirange(spans []stretch) string {
	ranges := make([]string, len(spans))
	for i, s := range spans {
		ranges[i] = `[` + stamp(s.Since) + `,` + stamp(s.Until) + `)`
	}
	return `{` + strings.Join(ranges, `,`) + `}`
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// begun returns the condition that an attempt belongs to the stretch: it began in the stretch, or after the latest
// stretch.
func begun(column string) string {
	return `(` + column + ` <@ @stretch::tstzmultirange OR @latest::bool AND ` + column + ` >= @until::timestamptz)`
}
