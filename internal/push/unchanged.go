package push

import (
	"slices"
	"time"
)

// Unchanged are times of which one must be that of the last change of what is to be changed now; nil: any may be. A zero time is never
// that.
type Unchanged []time.Time

// Check returns a [*StaleError] for what was last changed at another time.
func (u Unchanged) Check(updatedAt time.Time) error {
	if u == nil || slices.ContainsFunc(u, updatedAt.Equal) {
		return nil
	}
	return &StaleError{UpdatedAt: updatedAt}
}

// StaleError says that somebody else has changed what a change was made for.
type StaleError struct{ UpdatedAt time.Time }

// Error says when it was changed.
func (e *StaleError) Error() string {
	return "it was changed by somebody else at " + e.UpdatedAt.UTC().Format(time.RFC3339Nano) + "; read it again"
}
