package push

import (
	"errors"
	"time"

	"github.com/google/uuid"
)

// What callers of the store and of the services above it can tell apart.
var (
	// ErrUnavailable: Postgres could not be reached, or not in time. It is unknown whether anything was changed.
	// Only a request that names the same id or Idempotency-Key can safely be repeated.
	ErrUnavailable = errors.New("the database is unavailable")
	// ErrNotFound: there is no such thing, or it belongs to another tenant.
	ErrNotFound = errors.New("not found")
	// ErrNotCancelable: the push is being sent, or has ended otherwise.
	ErrNotCancelable = errors.New("the push cannot be canceled any more")
	// ErrNotReschedulable: the push is not waiting for its time any more.
	ErrNotReschedulable = errors.New("the push cannot be rescheduled any more")
	// ErrNotRetryable: the push has neither failed nor expired.
	ErrNotRetryable = errors.New("the push has neither failed nor expired")
	// ErrKeyReused: the Idempotency-Key was used for another request.
	ErrKeyReused = errors.New("the Idempotency-Key was used for another request")
	// ErrTooManyWebhooks: the tenant has as many as it may.
	ErrTooManyWebhooks = errors.New("the tenant has as many webhooks as it may")
	// ErrTooManySchedules: the tenant has as many as it may.
	ErrTooManySchedules = errors.New("the tenant has as many schedules as it may")
	// ErrNoPattern: there is no such campaign as a schedule is to have as its pattern.
	ErrNoPattern = errors.New("there is no such campaign")
	// ErrTooManyCampaigns: the tenant has as many that have not ended as it may.
	ErrTooManyCampaigns = errors.New("the tenant has as many campaigns as it may")
	// ErrTooManyBulkChanges: the tenant has as many under way as it may.
	ErrTooManyBulkChanges = errors.New("the tenant has as many bulk changes under way as it may")
	// ErrMoved: the push has another send time than the caller knows.
	ErrMoved = errors.New("the push was moved meanwhile")
	// ErrWebhookOff: the webhook is switched off, so that nothing is sent to it.
	ErrWebhookOff = errors.New("the webhook is switched off")
)

// GoneError: the Idempotency-Key has made a push that is not kept any more.
type GoneError struct {
	ID uuid.UUID // of the push
}

// Error says so.
func (e *GoneError) Error() string {
	return "the request was accepted before; its push is not kept any more"
}

// ComeAgain says that a wake-up has to come again: it came before its time by Postgres' clock, because the queue's clock
// is ahead, or this worker is closing.
type ComeAgain struct {
	In time.Duration // until then
}

// Error says when.
func (e ComeAgain) Error() string { return "the wake-up is to come again in " + e.In.String() }
