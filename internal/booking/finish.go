package booking

import (
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// Finish is the end of an attempt and the new state of its push.
type Finish struct {
	Attempt
	Outcome           push.Outcome
	ProviderMessageID string
	Error             string
	Reaped            bool          // the end of the attempt is unknown: the end of its lease counts
	Handed            time.Duration // the latest time, after StartedAt, when the provider received a delivered push; 0: not known
	Resolution        push.Resolution
	Segments          int // of the text message that the provider was sent; 0: none, or not known
}

// Attempt identifies an attempt, and where its push and related rows are stored.
type Attempt struct {
	Push         uuid.UUID
	RecipientKey int64
	SendAt       time.Time // of the push
	Token        uuid.UUID // of the claim
	Number       int       // 1, 2, …
	StartedAt    time.Time
}

// Lost is an attempt whose lease has expired.
type Lost struct {
	Attempt
	Of   push.Push
	Left time.Duration // time until the push expires
}

// Finish returns the end of a lost attempt: its outcome is unknown.
func (l Lost) Finish(retry push.Retry) Finish {
	const reason = "the attempt was lost: its worker did not report before the lease ended"
	return Finish{
		Attempt: l.Attempt, Outcome: push.Unknown, Error: reason, Reaped: true,
		Resolution: retry.After(push.Attempt{Number: l.Number, Outcome: push.Unknown, Error: reason}, l.Left, l.Push[:]),
	}
}

// Ended is a push that no longer holds a place in its recipient's quota.
type Ended struct {
	ID        uuid.UUID
	Tenant    uuid.UUID
	Recipient string
	Kind      quota.Kind
	RequestID string // see [push.Push]
}

// Past is the part of a push that shows its history.
type Past struct {
	push.Push
	Started time.Time // of the running attempt; zero: none

	HeldBy               string // see [push.Hold]
	HeldSince, HeldUntil time.Time
}

// Attempted is an attempt that has ended, with the fields of its push.
type Attempted struct {
	push.Send
	Push              uuid.UUID
	Campaign          uuid.UUID // zero: none
	Channel, Category string
}
