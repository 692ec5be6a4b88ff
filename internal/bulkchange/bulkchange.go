package bulkchange

import (
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
)

// Action is the action of a bulk change on its pushes.
type Action string

// The actions of a bulk change.
const (
	Cancel Action = "cancel"
	Move   Action = "move"
)

// Status is the progress of a bulk change.
type Status string

// The states of a bulk change.
const (
	Running   Status = "running"
	Canceling Status = "canceling" // it was stopped; a step may still be running
	Canceled  Status = "canceled"
	Done      Status = "done"
)

// Change cancels or moves all pushes that matched a filter and were scheduled when it was created. Workers carry it
// out.
type Change struct {
	ID, Tenant uuid.UUID
	Action     Action
	Filter     push.Filter   // without a status
	Erased     bool          // the recipient of the filter was erased
	Shift      time.Duration // for a move: whole seconds, later or earlier; 0: move to SendAt
	SendAt     time.Time     // for a move: the new time of all pushes
	By         push.Actor    // the actor that requested it
	Status     Status
	Listed     bool // all matching pushes are known

	Found, Changed int64
	Refused        map[string]int64 // by reason

	CreatedAt, UpdatedAt, EndedAt time.Time
}

// To returns the send time after a move of a push that was scheduled for sendAt.
func (b *Change) To(sendAt time.Time) time.Time {
	if b.Shift != 0 {
		return sendAt.Add(b.Shift)
	}
	return b.SendAt
}

// Backwards reports whether the pushes are changed from the last to the first. If they move to later times, no push
// then blocks the one before it.
func (b *Change) Backwards() bool { return b.Shift > 0 }

// Left returns the number of found pushes that are neither changed nor refused yet.
func (b *Change) Left() int64 {
	left := b.Found - b.Changed
	for _, n := range b.Refused {
		left -= n
	}
	return left
}

// Push is a push of a bulk change.
type Push struct {
	ID           uuid.UUID
	RecipientKey int64
	SendAt       time.Time // when the change was made
	Outcome      string    // "": undecided; [Changed]; or the reason of the refusal
	Rules        []string  // the rules that refused it
	SendingSince time.Time // when a cancel found it being sent first; zero: it has not
	Sending      bool      // an attempt is under way: look again soon
}

// Changed is the outcome of a changed push. The other constants are reasons of refusal that only bulk changes have;
// further reasons are named like the problems of a cancel or a move.
const (
	Changed        = "changed"
	NotScheduled   = "not-scheduled"   // it is being sent, or has ended
	MovedMeanwhile = "moved-meanwhile" // another caller has moved it
	InvalidTime    = "invalid-time"    // its new time has passed, is too far ahead, or is after its expiry
	Failed         = "internal"        // it failed repeatedly
)

// Position is a position in a list of bulk changes: after the one with this creation time and id.
type Position struct {
	CreatedAt time.Time
	ID        uuid.UUID
}

// Page is a page of bulk changes. Next is where the next page begins; nil: this is the last one.
type Page struct {
	Changes []Change
	Next    *Position
}

// RefusedPage is a page of the pushes that a bulk change refused, by send time. Next is as in [push.Page].
type RefusedPage struct {
	Pushes []Push
	Next   *push.Position
}

// ErrTooMany: the tenant has reached the maximum number of running bulk changes.
var ErrTooMany = errors.New("the tenant already has the maximum number of running bulk changes")
