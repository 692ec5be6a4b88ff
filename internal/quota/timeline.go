package quota

import (
	"slices"
	"sort"
	"time"
	"unique"

	"github.com/google/uuid"
)

// Timeline holds the bookings of one recipient, sorted by time. The zero value is empty.
//
// It stores the times as numbers, which compare many times faster than [time.Time], and apart from the ids, so that an
// insertion among a hundred thousand bookings moves little memory.
type Timeline struct {
	at     []time.Duration // since the origin
	ids    []uuid.UUID
	kinds  []unique.Handle[Kind] // nil: all have the zero kind
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
	if slices.ContainsFunc(bookings, func(b Booking) bool { return b.Kind != Kind{} }) {
		l.kinds = make([]unique.Handle[Kind], len(bookings))
		for i := range bookings {
			if i > 0 && bookings[i].Kind == bookings[i-1].Kind {
				l.kinds[i] = l.kinds[i-1]
			} else {
				l.kinds[i] = unique.Make(bookings[i].Kind)
			}
		}
	}
	return l
}

// beginAt makes t the origin of the timeline, if it is empty.
func (l *Timeline) beginAt(t time.Time) {
	if len(l.at) == 0 {
		l.origin = t
	}
}

// offset returns the time from the origin to t, as [since] caps it.
func (l *Timeline) offset(t time.Time) time.Duration { return since(l.origin, t) }

// since returns the time from an origin to t, capped at two centuries: no window and no horizon is that long.
func since(origin, t time.Time) time.Duration {
	const most = 200 * 365 * 24 * 60 * 60
	seconds := min(max(t.Unix()-origin.Unix(), -most), most)
	return time.Duration(seconds)*time.Second + time.Duration(t.Nanosecond()-origin.Nanosecond())
}

// Len returns the number of bookings.
func (l Timeline) Len() int { return len(l.at) }

// Bookings returns the bookings by time.
func (l Timeline) Bookings() []Booking {
	bookings := make([]Booking, len(l.at))
	for i := range bookings {
		bookings[i] = Booking{ID: l.ids[i], At: l.origin.Add(l.at[i])}
	}
	for i, kind := range l.kinds {
		bookings[i].Kind = kind.Value()
	}
	return bookings
}

// Insert returns the timeline with one more booking, after the ones with the same time. The old timeline must no longer
// be used.
func (l Timeline) Insert(b Booking) Timeline {
	if len(l.at) == 0 {
		return NewTimeline([]Booking{b})
	}
	at := l.offset(b.At)
	i := sort.Search(len(l.at), func(i int) bool { return l.at[i] > at })
	if l.kinds == nil && b.Kind != (Kind{}) {
		l.kinds = slices.Repeat([]unique.Handle[Kind]{unique.Make(Kind{})}, len(l.at))
	}
	if l.kinds != nil {
		l.kinds = slices.Insert(l.kinds, i, unique.Make(b.Kind))
	}
	l.at, l.ids = slices.Insert(l.at, i, at), slices.Insert(l.ids, i, b.ID)
	return l
}

// Remove returns the timeline without one booking. The old timeline must no longer be used.
func (l Timeline) Remove(b Booking) Timeline {
	at := l.offset(b.At)
	for i := l.before(b.At); i < len(l.at) && l.at[i] == at; i++ {
		if l.ids[i] == b.ID {
			l.at, l.ids = slices.Delete(l.at, i, i+1), slices.Delete(l.ids, i, i+1)
			if l.kinds != nil {
				l.kinds = slices.Delete(l.kinds, i, i+1)
			}
			break
		}
	}
	return l
}

// Has reports whether a booking lies in [from, until).
func (l Timeline) Has(from, until time.Time) bool { return l.before(from) < l.before(until) }

// Before returns the bookings before a time.
func (l Timeline) Before(t time.Time) Timeline { return l.part(0, l.before(t)) }

// Since returns the bookings at or after a time.
func (l Timeline) Since(t time.Time) Timeline { return l.part(l.before(t), len(l.at)) }

// between returns the bookings after one time and before another.
func (l Timeline) between(after, before time.Time) Timeline {
	from := l.offset(after)
	low := sort.Search(len(l.at), func(i int) bool { return l.at[i] > from })
	return l.part(low, max(low, l.before(before)))
}

// part returns the bookings with indexes in [low, high).
func (l Timeline) part(low, high int) Timeline {
	part := Timeline{at: l.at[low:high:high], ids: l.ids[low:high:high], origin: l.origin}
	if l.kinds != nil {
		part.kinds = l.kinds[low:high:high]
	}
	return part
}

// within returns the indexes of the bookings in [from, until).
func (l *Timeline) within(from, until time.Duration) (low, high int) {
	low = before(l.at, from)
	return low, low + before(l.at[low:], until)
}

// times returns the times in [low, high) that a scope counts.
func (l *Timeline) times(low, high int, s *Scope) []time.Duration {
	switch {
	case s == nil:
		return l.at[low:high]
	case l.kinds == nil:
		if s.Has(Kind{}) {
			return l.at[low:high]
		}
		return nil
	}
	at := make([]time.Duration, 0, high-low)
	for i, kind := range l.kinds[low:high] {
		if s.Has(kind.Value()) {
			at = append(at, l.at[low+i])
		}
	}
	return at
}

// nearest returns the indexes of at most n times, the nearest to t.
func nearest(at []time.Duration, t time.Duration, n int) (low, high int) {
	low, high = 0, len(at)
	for high-low > n {
		if t-at[low] > at[high-1]-t {
			low++
		} else {
			high--
		}
	}
	return low, high
}

// before counts the bookings before t.
func (l Timeline) before(t time.Time) int { return before(l.at, l.offset(t)) }

// before returns the number of times before another one.
func before(at []time.Duration, until time.Duration) int {
	return sort.Search(len(at), func(i int) bool { return at[i] >= until })
}
