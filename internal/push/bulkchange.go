package push

import (
	"time"

	"github.com/google/uuid"
)

// BulkAction is the action of a bulk change on its pushes.
type BulkAction string

// The actions of a bulk change.
const (
	BulkCancel BulkAction = "cancel"
	BulkMove   BulkAction = "move"
)

// BulkStatus is the progress of a bulk change.
type BulkStatus string

// The states of a bulk change.
const (
	BulkRunning   BulkStatus = "running"
	BulkCanceling BulkStatus = "canceling" // it was stopped; a step may still be running
	BulkCanceled  BulkStatus = "canceled"
	BulkDone      BulkStatus = "done"
)

// BulkChange cancels or moves all pushes that matched a filter and were scheduled when it was created. Workers carry it
// out.
type BulkChange struct {
	ID, Tenant uuid.UUID
	Action     BulkAction
	Filter     Filter        // without a status
	Erased     bool          // the recipient of the filter was erased
	Shift      time.Duration // for a move: whole seconds, later or earlier; 0: move to SendAt
	SendAt     time.Time     // for a move: the new time of all pushes
	By         Actor         // the actor that requested it
	Status     BulkStatus
	Listed     bool // all matching pushes are known

	Found, Changed int64
	Refused        map[string]int64 // by reason

	CreatedAt, UpdatedAt, EndedAt time.Time
}

// To returns the send time after a move of a push that was scheduled for sendAt.
func (b *BulkChange) To(sendAt time.Time) time.Time {
	if b.Shift != 0 {
		return sendAt.Add(b.Shift)
	}
	return b.SendAt
}

// Backwards reports whether the pushes are changed from the last to the first. If they move to later times, no push
// then blocks the one before it.
func (b *BulkChange) Backwards() bool { return b.Shift > 0 }

// Left returns the number of found pushes that are neither changed nor refused yet.
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
	Outcome      string    // "": undecided; [BulkChanged]; or the reason of the refusal
	Rules        []string  // the rules that refused it
}

// BulkChanged is the outcome of a changed push. The other constants are reasons of refusal that only bulk changes have;
// further reasons are named like the problems of a cancel or a move.
const (
	BulkChanged     = "changed"
	BulkNoLonger    = "not-scheduled"   // it is being sent, or has ended
	BulkMovedBefore = "moved-meanwhile" // another caller has moved it
	BulkInvalidTime = "invalid-time"    // its new time has passed, is too far ahead, or is after its expiry
	BulkFailed      = "internal"        // it failed repeatedly
)

// BulkPosition is a position in a list of bulk changes: after the one with this creation time and id.
type BulkPosition struct {
	CreatedAt time.Time
	ID        uuid.UUID
}

// BulkPage is a page of bulk changes. Next is where the next page begins; nil: this is the last one.
type BulkPage struct {
	Changes []BulkChange
	Next    *BulkPosition
}

// BulkRefusedPage is a page of the pushes that a bulk change refused, by send time. Next is as in [Page].
type BulkRefusedPage struct {
	Pushes []BulkPush
	Next   *Position
}
