package schedule

import (
	"time"

	"github.com/sendquota/sendquota/internal/push"
)

// waker wakes workers for the lane of a recipient at a time, which is in from now. It does not wait.
type waker interface {
	Wake(recipientKey int64, at time.Time, in time.Duration)
}

// horizonWaker wakes lanes for pushes that are due within the horizon. Later pushes are counted by the lanes' owners in
// time.
type horizonWaker struct {
	waker   waker
	horizon time.Duration
}

// wake wakes workers for the lane of a push when it becomes due. If that is beyond the horizon, the lane's owner counts
// the push in time.
func (w *horizonWaker) wake(p *push.Push) {
	if p.Status != push.Scheduled {
		return
	}
	w.Wake(push.RecipientKey(p.Tenant, p.Recipient), p.NextAt, p.NextAt.Sub(p.UpdatedAt))
}

// Wake wakes workers for the lane of a recipient when a push is due at a time, which is in from now. It does nothing
// beyond the horizon.
func (w *horizonWaker) Wake(recipientKey int64, at time.Time, in time.Duration) {
	if in < w.horizon+margin {
		w.waker.Wake(recipientKey, at, in)
	}
}

// margin is the time that a commit may take: meanwhile, the send time may come within the horizon.
const margin = 5 * time.Second
