package quota

import (
	"slices"
	"time"
)

// Span is a range of whole seconds, from From to before Until.
type Span struct{ From, Until time.Time }

// Has reports whether a time lies in the span.
func (s Span) Has(t time.Time) bool { return !t.Before(s.From) && t.Before(s.Until) }

// Seconds returns the whole seconds inside the interval. A missing bound is zero.
func (i Interval) Seconds() Span {
	s := Span{From: i.From, Until: ceil(i.Until)}
	if !i.From.IsZero() {
		if s.From = ceil(i.From); s.From.Equal(i.From) && !i.FromClosed {
			s.From = s.From.Add(Second)
		}
	}
	return s
}

// ceil rounds up to a whole second. The zero time stays zero.
func ceil(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.Add(Second - 1).Truncate(Second)
}

// FreeSpans returns the seconds of a span that no interval covers, by time. Two spans are at least one second apart.
func FreeSpans(blocked []Interval, of Span) (free []Span) {
	taken := make([]Span, 0, len(blocked))
	for _, i := range blocked {
		if s := i.Seconds(); s.Until.IsZero() || s.From.Before(s.Until) { // an interval can lie between two seconds
			taken = append(taken, s)
		}
	}
	slices.SortFunc(taken, func(a, b Span) int { return a.From.Compare(b.From) })
	at := of.From
	for _, t := range taken {
		if at.Before(t.From) && at.Before(of.Until) {
			free = append(free, Span{at, earlier(t.From, of.Until)})
		}
		if t.Until.IsZero() {
			return free
		}
		if t.Until.After(at) {
			at = t.Until
		}
	}
	if at.Before(of.Until) {
		free = append(free, Span{at, of.Until})
	}
	return free
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
