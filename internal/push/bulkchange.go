package push

import (
	"time"

	"github.com/google/uuid"
)

// BulkAction is what a bulk change does to pushes.
type BulkAction string

// The actions of a bulk change.
const (
	BulkCancel BulkAction = "cancel"
	BulkMove   BulkAction = "move"
)

// BulkStatus is how far a bulk change is.
type BulkStatus string

// The states of a bulk change.
const (
	BulkRunning   BulkStatus = "running"
	BulkCanceling BulkStatus = "canceling" // it was stopped, and a step of it may be under way
	BulkCanceled  BulkStatus = "canceled"
	BulkDone      BulkStatus = "done"
)

// BulkChange cancels or moves all pushes that fit a filter, and were scheduled when it was made. The workers carry it out.
type BulkChange struct {
	ID, Tenant uuid.UUID
	Action     BulkAction
	Filter     Filter        // without a status
	Erased     bool          // the recipient of the filter was erased
	Shift      time.Duration // of a move: whole seconds, later or earlier; 0: to SendAt
	SendAt     time.Time     // of a move: the time for all
	By         Actor         // who asked for it
	Status     BulkStatus
	Listed     bool // all pushes that fit are known

	Found, Changed int64
	Refused        map[string]int64 // by the reason

	CreatedAt, UpdatedAt, EndedAt time.Time
}

// To is when a push that was at a send time is to be sent after a move.
func (b *BulkChange) To(sendAt time.Time) time.Time {
	if b.Shift != 0 {
		return sendAt.Add(b.Shift)
	}
	return b.SendAt
}

// Backwards reports whether the pushes are changed from the last to the first: where they move to later times, none is then in the
// way of the one before it.
func (b *BulkChange) Backwards() bool { return b.Shift > 0 }

// Left is how many of the pushes that were found are neither changed nor refused.
func (b *BulkChange) Left() int64 {
	left := b.Found - b.Changed
	for _, n := range b.Refused {
		left -= n
	}
	return left
}

// BulkPush is a push of a bulk change.
type BulkPush struct {
	ID           uuid.UUID
	RecipientKey int64
	SendAt       time.Time // when the change found it
	Outcome      string    // empty: undecided; [BulkChanged]; or why it was refused
	Rules        []string  // that have refused it
}

// BulkChanged is the outcome of a push that was changed. These are the reasons of refusals that only bulk changes have; the others are
// named like the problems of a cancel or a move.
const (
	BulkChanged     = "changed"
	BulkNoLonger    = "not-scheduled"   // it is being sent, or has ended
	BulkMovedBefore = "moved-meanwhile" // somebody else has moved it
	BulkInvalidTime = "invalid-time"    // its new time has passed, is too far ahead, or is after its expiry
	BulkFailed      = "internal"        // it failed again and again
)

// BulkPosition is a place in a list of bulk changes: behind the one that was made then and has this id.
type BulkPosition struct {
	CreatedAt time.Time
	ID        uuid.UUID
}

// BulkPage is a part of a list of bulk changes. Next is where the next part begins; nil: this is the last one.
type BulkPage struct {
	Changes []BulkChange
	Next    *BulkPosition
}

// BulkRefusedPage is a part of the pushes that a bulk change could not change, by send time. Next as in [Page].
type BulkRefusedPage struct {
	Pushes []BulkPush
	Next   *Position
}
