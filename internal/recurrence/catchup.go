package recurrence

import "time"

// CatchUp selects what happens to missed occurrences.
type CatchUp string

// The ways to catch up.
const (
	Skip CatchUp = "skip" // all of them are skipped
	Last CatchUp = "last" // the latest missed one runs, unless a later one is due by now
)

// Run is one occurrence and whether it runs.
type Run struct {
	At   time.Time
	Done bool // false: it is skipped
}

// Look is the input of a check for due occurrences.
type Look struct {
	After   time.Time     // all occurrences up to here are recorded
	Now     time.Time     //
	Grace   time.Duration // an occurrence later than this was missed
	Resumed time.Time     // the end of the last pause; zero: never paused
	Until   time.Time     // exclusive end of the occurrences; zero: no end
	CatchUp CatchUp       //
	Most    int           // maximum number of runs; check again after the last one
}

// Runs returns the due occurrences in order, and which of them run.
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
