package booking

import (
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
)

// first returns the first of the pushes that a draft retries; nil: it retries none. It is false if that one is not there any more, or
// was retried again since the caller looked.
func (x *Decider) first(d *Draft) (*push.Push, bool) {
	if d.Retried == nil {
		return nil, true
	}
	p, ok := x.existing[d.Push.Retry.First]
	return &p, ok && p.Tenant == d.Push.Tenant && p.Recipient == d.Push.Recipient && p.Retry.Latest == *d.Retried
}

// retried notes the latest retry of a push, for drafts that retry it as well.
func (x *Decider) retried(first push.Push, latest uuid.UUID) {
	first.Retry.Latest = latest
	x.existing[first.ID] = first
}
