package push

import (
	"slices"
	"time"
)

// Unchanged lists acceptable times of the last change; nil accepts any. A zero time never matches.
type Unchanged []time.Time

// Check returns a [*StaleError] unless updatedAt is acceptable.
func (u Unchanged) Check(updatedAt time.Time) error {
	if u == nil || slices.ContainsFunc(u, updatedAt.Equal) {
		return nil
	}
	return &StaleError{UpdatedAt: updatedAt}
}

// StaleError rejects a change because another caller changed the same thing since it was read.
type StaleError struct{ UpdatedAt time.Time }

// Error names the time of the other change.
func (e *StaleError) Error() string {
	return "it was changed by another caller at " + e.UpdatedAt.UTC().Format(time.RFC3339Nano) + "; read it again"
}
