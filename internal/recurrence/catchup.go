package recurrence

import "time"

// CatchUp says what becomes of occurrences that were missed.
type CatchUp string

// The ways to catch up.
const (
	Skip CatchUp = "skip" // none of them is done
	Last CatchUp = "last" // the latest one that was missed while nothing ran is done, unless a later one is due by now
)

// Run is what becomes of one occurrence.
type Run struct {
	At   time.Time
	Done bool // false: it is skipped
}

// Look is what is known when somebody looks for what is due.
type Look struct {
	After   time.Time     // up to here everything is on record
	Now     time.Time     //
	Grace   time.Duration // an occurrence that is later than this was missed
	Resumed time.Time     // when the schedule was paused for the last time, until when; zero: never
	Until   time.Time     // no occurrence is at this time or behind it; zero: there is no such time
	CatchUp CatchUp       //
	Most    int           // so many runs at most; look again after the last one
}

// Runs returns what becomes of the occurrences that are due, in their order.
func (s *Schedule) Runs(l Look) []Run {
	var runs []Run
	at, due := s.due(l, l.After)
	for due && len(runs) < l.Most {
		next, more := s.due(l, at)
		done := !l.missed(at) || l.CatchUp == Last && !more
		runs = append(runs, Run{At: at, Done: done && at.After(l.Resumed)})
		at, due = next, more
	}
	return runs
}

// due returns the first occurrence after a time, if it is due.
func (s *Schedule) due(l Look, after time.Time) (time.Time, bool) {
	at, ok := s.Next(after)
	return at, ok && !at.After(l.Now) && (l.Until.IsZero() || at.Before(l.Until))
}

// missed reports whether an occurrence is too late.
func (l Look) missed(at time.Time) bool { return l.Now.Sub(at) > l.Grace }
