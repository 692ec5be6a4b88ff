package booking

import (
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
)

// first returns the first push of the chain that a draft retries; nil if the draft is no retry. It is false if that
// push is no longer stored, or was retried again since the caller read it.
func (x *Decider) first(d *Draft) (*push.Push, bool) {
	if d.Retried == nil {
		return nil, true
	}
	p, ok := x.existing[d.Push.Retry.First]
	return &p, ok && p.Tenant == d.Push.Tenant && p.Recipient == d.Push.Recipient && p.Retry.Latest == *d.Retried
}

// retried records the latest retry of a push, for later drafts that retry it as well.
func (x *Decider) retried(first push.Push, latest uuid.UUID) {
	first.Retry.Latest = latest
	x.existing[first.ID] = first
}
