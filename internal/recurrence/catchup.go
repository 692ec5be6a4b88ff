package recurrence

import "time"

// CatchUp selects what happens to missed occurrences.
type CatchUp string

// The ways to catch up.
const (
	Skip CatchUp = "skip" // all of them are skipped
	Last CatchUp = "last" // the latest missed one runs, unless a later one is due by now
)

// Due is a due occurrence and whether it runs.
type Due struct {
	At   time.Time
	Done bool // false: it is skipped
}

// Query selects due occurrences.
type Query struct {
	After   time.Time     // all occurrences up to here are recorded
	Now     time.Time     //
	Grace   time.Duration // an occurrence later than this was missed
	Resumed time.Time     // the end of the last pause; zero: never paused
	Until   time.Time     // exclusive end of the occurrences; zero: no end
	CatchUp CatchUp       //
	Most    int           // maximum number of runs; check again after the last one
}

// Due returns the due occurrences in order, and which of them run.
func (e *Expression) Due(q Query) []Due {
	var runs []Due
	at, due := e.due(q, q.After)
	for due && len(runs) < q.Most {
		next, more := e.due(q, at)
		done := !q.missed(at) || q.CatchUp == Last && !more
		runs = append(runs, Due{At: at, Done: done && at.After(q.Resumed)})
		at, due = next, more
	}
	return runs
}

// due returns the first occurrence after a time, if it is due.
func (e *Expression) due(q Query, after time.Time) (time.Time, bool) {
	at, ok := e.Next(after)
	return at, ok && !at.After(q.Now) && (q.Until.IsZero() || at.Before(q.Until))
}

// missed reports whether an occurrence is too late.
func (q Query) missed(at time.Time) bool { return q.Now.Sub(at) > q.Grace }
