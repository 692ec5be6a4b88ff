package push

import (
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"
)

// The errors of the store and the services above it that callers distinguish.
var (
	// ErrUnavailable: Postgres was not reached, or not in time. It is unknown whether anything changed. Only a request
	// with the same id or Idempotency-Key can safely be repeated.
	ErrUnavailable = errors.New("the database is unavailable")
	// ErrNotFound: the thing does not exist, or belongs to another tenant.
	ErrNotFound = errors.New("not found")
	// ErrNotCancelable: the push is being sent, or has ended.
	ErrNotCancelable = errors.New("the push cannot be canceled any more")
	// ErrNotReschedulable: the push is not scheduled any more.
	ErrNotReschedulable = errors.New("the push cannot be rescheduled any more")
	// ErrNotRetryable: the push has neither failed nor expired.
	ErrNotRetryable = errors.New("the push has neither failed nor expired")
	// ErrKeyReused: the Idempotency-Key was used for another request.
	ErrKeyReused = errors.New("the Idempotency-Key was used for another request")
	// ErrMoved: the send time of the push is not the one that the caller knows.
	ErrMoved = errors.New("the push was moved meanwhile")
)

// GoneError: the push that this Idempotency-Key created is no longer stored.
type GoneError struct {
	ID uuid.UUID // the push
}

// Error does not name the push.
func (e *GoneError) Error() string {
	return "the request was accepted before; its push is no longer stored"
}

// ComeAgain reschedules a wake-up. Either it came before its time by Postgres' clock, because the queue's clock is
// ahead, or this worker is stopping.
type ComeAgain struct {
	In time.Duration // from now
}

// Error names the delay.
func (e ComeAgain) Error() string {
	return "the wake-up came too early or the worker is stopping; retrying in " + e.In.String()
}

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
