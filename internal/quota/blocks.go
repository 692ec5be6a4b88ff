package quota

import (
	"cmp"
	"slices"
	"time"
)

// block is a stretch of time [from, until), as offsets of a timeline, in which a rule has no place left. The counted
// bookings with indexes in [low, high) fill it.
type block struct {
	from, until time.Duration
	low, high   int
}

// blocks finds the blocks of one rule, in one direction of time. Every answer about a rule comes from them: whether a
// time is free, which bookings are in its way, and which time is the next free one. So a kind of rule consists of two
// methods, which find the next and the previous block: rolling rules have nextRun and previousRun, rules with periods
// have nextPeriod and previousPeriod.
//
// It holds no pointer to the timeline: the caller's timeline would move to the heap.
type blocks struct {
	rule      *Rule
	places    int
	low, high int             // the indexes of the bookings that can fill a block
	at        []time.Duration // the times of those that the rule counts; nil: they are too few to fill a block
	passed    int             // the number of blocks that lie behind: of a rolling rule, its runs; of periods, the returned ones

	origin time.Time // of the timeline
	period block     // the last period, or gap between two periods, that was asked about
	inside bool      // it is a period
}

// init makes b the blocks of a rule that overlap [from, until).
func (b *blocks) init(r *Rule, line *Timeline, from, until time.Duration) {
	b.rule, b.high = r, len(line.at)
	if r.Periods == nil {
		b.low, b.high = line.within(from-r.Window+1, until+r.Window-1)
	} else {
		b.origin = line.origin
	}
	b.count(line)
}

// initAt makes b the blocks of a rule that overlap t, which has the offset at.
func (b *blocks) initAt(r *Rule, line *Timeline, t time.Time, at time.Duration) {
	b.rule = r
	if r.Periods == nil {
		b.low, b.high = line.within(at-r.Window+1, at+r.Window)
		b.count(line)
		return
	}
	b.origin = line.origin
	b.around(t)
	if b.inside {
		b.low, b.high = line.within(b.period.from, b.period.until)
	}
	b.count(line)
	b.period.high = len(b.at)
}

// count finds the bookings that the rule counts, if they can suffice for a block.
func (b *blocks) count(line *Timeline) {
	if b.places = b.rule.places(); b.high-b.low >= b.places {
		b.at = line.times(b.low, b.high, b.rule.Counts)
	}
}

// next returns the next block that ends after t and begins before end. It returns each block once. t must not become
// earlier from call to call.
func (b *blocks) next(t, end time.Duration) (block, bool) {
	switch {
	case len(b.at) < b.places:
		return block{}, false
	case b.rule.Periods == nil:
		return b.nextRun(t, end)
	}
	return b.nextPeriod(t, end)
}

// previous returns the last block that begins at or before t and ends after end. It returns each block once. t must not
// become later from call to call.
func (b *blocks) previous(t, end time.Duration) (block, bool) {
	switch {
	case len(b.at) < b.places:
		return block{}, false
	case b.rule.Periods == nil:
		return b.previousRun(t, end)
	}
	return b.previousPeriod(t, end)
}

// pass returns the first time at or after t that the rule leaves free, or a time after end.
func (b *blocks) pass(t, end time.Duration) time.Duration {
	for t <= end {
		blocked, ok := b.next(t, t+1)
		if !ok {
			break
		}
		t = blocked.until
	}
	return t
}

// passBack returns the last time at or before t that the rule leaves free, or a time before end.
func (b *blocks) passBack(t, end time.Duration) time.Duration {
	for t >= end {
		blocked, ok := b.previous(t, t)
		if !ok {
			break
		}
		t = blocked.from - 1
	}
	return t
}

// used returns the number of counted bookings in the period of t, or in the fullest window that contains t. The blocks
// must be those of t.
func (b *blocks) used(line *Timeline, t time.Duration) int {
	at := b.at
	if at == nil {
		at = line.times(b.low, b.high, b.rule.Counts)
	}
	if b.rule.Periods == nil {
		return b.rule.fullest(at, t)
	}
	return len(at)
}

// conflicts returns the bookings in the blocks of t, of which first is the first: the nearest ones, and the number of the
// others. Bookings between two blocks are conflicts too: a run that is shifted towards t, booking by booking, still contains t.
func (b *blocks) conflicts(line *Timeline, first block, t time.Duration) (conflicts []Booking, omitted int) {
	if b.places == 0 {
		return nil, 0
	}
	back := *b
	back.passed = 0
	last, _ := back.previous(t, t)
	low, high := nearest(b.at[first.low:last.high], t, MaxConflicts)
	conflicts = b.bookings(line, first.low+low, first.low+high)
	slices.SortFunc(conflicts, func(a, b Booking) int {
		return cmp.Or(a.At.Compare(b.At), slices.Compare(a.ID[:], b.ID[:]))
	})
	return conflicts, last.high - first.low - len(conflicts)
}

// bookings returns the bookings with indexes in [low, high), which are the indexes of a [block].
func (b *blocks) bookings(line *Timeline, low, high int) []Booking {
	if len(b.at) == b.high-b.low {
		return line.part(b.low+low, b.low+high).Bookings()
	}
	bookings := make([]Booking, 0, high-low)
	for i, n := b.low, 0; n < high; i++ {
		kind := line.kinds[i].Value()
		if !b.rule.Counts.Has(kind) {
			continue
		}
		if n >= low {
			bookings = append(bookings, Booking{ID: line.ids[i], At: line.origin.Add(line.at[i]), Kind: kind})
		}
		n++
	}
	return bookings
}
