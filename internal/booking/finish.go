package booking

import (
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// Finish says how an attempt ended and what becomes of its push.
type Finish struct {
	Attempt
	Outcome           push.Outcome
	ProviderMessageID string
	Error             string
	Reaped            bool          // it is not known when the attempt ended: at the end of its lease
	Handed            time.Duration // how long after StartedAt, at most, the provider had a delivered push; 0: not known
	Resolution        push.Resolution
}

// Attempt names an attempt, and says where its push and what belongs to it are found.
type Attempt struct {
	Push         uuid.UUID
	RecipientKey int64
	SendAt       time.Time // of the push
	Token        uuid.UUID // of the claim
	Number       int       // 1, 2, …
	StartedAt    time.Time
}

// Lost is an attempt whose lease ran out.
type Lost struct {
	Attempt
	Of   push.Push
	Left time.Duration // until the push expires
}

// Finish says that the outcome of a lost attempt is unknown, and what becomes of the push.
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
