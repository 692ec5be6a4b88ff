package quota

import (
	"slices"
	"sort"
	"time"

	"github.com/google/uuid"
)

// Timeline is bookings of one recipient, sorted by time. The zero value has none.
//
// It keeps their times as numbers, which are compared many times faster than a [time.Time], and apart from their ids,
// so that there is little to move when one is inserted among a hundred thousand.
type Timeline struct {
	at     []time.Duration // since the origin
	ids    []uuid.UUID
	origin time.Time
}

// NewTimeline returns the timeline of bookings, which must be sorted by time.
func NewTimeline(bookings []Booking) Timeline {
	var l Timeline
	if len(bookings) == 0 {
		return l
	}
	l.origin, l.at, l.ids = bookings[0].At, make([]time.Duration, len(bookings)), make([]uuid.UUID, len(bookings))
	for i := range bookings {
		l.at[i], l.ids[i] = l.offset(bookings[i].At), bookings[i].ID
	}
	return l
}

// offset is the time from the origin to t, but never more than two centuries: no window and no horizon is as long.
func (l Timeline) offset(t time.Time) time.Duration {
	const most = 200 * 365 * 24 * 60 * 60
	seconds := min(max(t.Unix()-l.origin.Unix(), -most), most)
	return time.Duration(seconds)*time.Second + time.Duration(t.Nanosecond()-l.origin.Nanosecond())
}

// Len is how many bookings there are.
func (l Timeline) Len() int { return len(l.at) }

// Bookings returns the bookings by time.
func (l Timeline) Bookings() []Booking {
	bookings := make([]Booking, len(l.at))
	for i := range bookings {
		bookings[i] = Booking{ID: l.ids[i], At: l.origin.Add(l.at[i])}
	}
	return bookings
}

// Insert returns the timeline with one more booking, behind those of the same time. The old one must not be used any
// more.
func (l Timeline) Insert(b Booking) Timeline {
	if len(l.at) == 0 {
		return NewTimeline([]Booking{b})
	}
	at := l.offset(b.At)
	i := sort.Search(len(l.at), func(i int) bool { return l.at[i] > at })
	l.at, l.ids = slices.Insert(l.at, i, at), slices.Insert(l.ids, i, b.ID)
	return l
}

// Remove returns the timeline without one booking. The old one must not be used any more.
func (l Timeline) Remove(b Booking) Timeline {
	at := l.offset(b.At)
	for i := l.before(b.At); i < len(l.at) && l.at[i] == at; i++ {
		if l.ids[i] == b.ID {
			l.at, l.ids = slices.Delete(l.at, i, i+1), slices.Delete(l.ids, i, i+1)
			break
		}
	}
	return l
}

// Has reports whether there is a booking that is not before from, but before until.
func (l Timeline) Has(from, until time.Time) bool { return l.before(from) < l.before(until) }

// Before returns the bookings before a time.
func (l Timeline) Before(t time.Time) Timeline { return l.part(0, l.before(t)) }

// A run of a rule is Limit consecutive bookings, named by the index of the first. A run that is shorter than the
// window is full: it blocks the open interval between its bounds. From one run to the next neither bound goes back,
// so that a sweep over time passes each run once.

// near returns the bookings that share a window of the rule with t. A run that blocks t lies among them, and each run
// among them that is full does.
func (l Timeline) near(r Rule, t time.Time) Timeline {
	return l.between(t.Add(-r.Window), t.Add(r.Window))
}

// between returns the bookings after one time and before another.
func (l Timeline) between(after, before time.Time) Timeline {
	from := l.offset(after)
	low := sort.Search(len(l.at), func(i int) bool { return l.at[i] > from })
	return l.part(low, max(low, l.before(before)))
}

// part is the bookings with some indexes.
func (l Timeline) part(low, high int) Timeline {
	return Timeline{l.at[low:high:high], l.ids[low:high:high], l.origin}
}

// nearest returns the indexes of at most so many bookings, those nearest to t.
func (l Timeline) nearest(t time.Time, most int) (low, high int) {
	at := l.offset(t)
	low, high = 0, len(l.at)
	for high-low > most {
		if at-l.at[low] > l.at[high-1]-at {
			low++
		} else {
			high--
		}
	}
	return low, high
}

// before counts the bookings before t.
func (l Timeline) before(t time.Time) int {
	until := l.offset(t)
	return sort.Search(len(l.at), func(i int) bool { return l.at[i] >= until })
}

// runs is how many runs of a rule there are. A rule of limit 0 has none: it always blocks.
func (l Timeline) runs(r Rule) int {
	if r.Limit == 0 {
		return 0
	}
	return max(0, len(l.at)-r.Limit+1)
}

// full reports whether a run leaves no place.
func (l Timeline) full(r Rule, run int) bool { return l.at[run+r.Limit-1]-l.at[run] < r.Window }

// bounds are those of the interval that a run blocks if it is full.
func (l Timeline) bounds(r Rule, run int) (from, until time.Duration) {
	return l.at[run+r.Limit-1] - r.Window, l.at[run] + r.Window
}

// firstFull returns the first run that is full, or -1.
func (l Timeline) firstFull(r Rule) int {
	for run := range l.runs(r) {
		if l.full(r, run) {
			return run
		}
	}
	return -1
}

// lastFull returns the last run that is full, or -1.
func (l Timeline) lastFull(r Rule) int {
	run := l.runs(r) - 1
	for run >= 0 && !l.full(r, run) {
		run--
	}
	return run
}
