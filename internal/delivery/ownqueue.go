package delivery

import (
	"errors"
	"time"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/channel"
	"github.com/sendquota/sendquota/internal/push"
)

// The channels that tenants make share one queue of a worker. Each tenant has its own breaker and pauses in it, and tenants
// take turns; no trouble of one tenant's provider stops another tenant.

// ownLabel is the channel in metrics of all channels that tenants make.
const ownLabel = "(tenant)"

// newOwnQueue returns the queue of the channels of tenants. Their attempts use at most half of the worker's slots.
func newOwnQueue(allSlots int) *channelQueue {
	s := &slots{}
	s.free.Store(int64(max(allSlots/2, 1)))
	q := newChannelQueue(channel.Entry{Name: booking.OwnRoute, Retry: push.Retry{MaxAttempts: 1, First: time.Second, Max: 30 * time.Second}, Shares: push.DefaultShares}, s)
	q.holds.apart = true
	return q
}

// label returns the channel in metrics.
func (q *channelQueue) label() string {
	if q.channel == booking.OwnRoute {
		return ownLabel
	}
	return q.channel
}

// labelOf returns the channel of a push in metrics, whose labels must be few.
func labelOf(p *push.Push) string {
	if p.Own {
		return ownLabel
	}
	return p.Channel
}

// channelOf returns the channel for a claimed push: the tenant's own, or the operator's if the tenant has none of that name.
func (w *Worker) channelOf(c booking.Claim) (channel.Entry, error) {
	if w.cfg.Claimed != nil {
		return w.cfg.Claimed(c.Push.Tenant, c.Push.Channel, c.Channel)
	}
	if e, known := w.channels.Get(c.Push.Channel); known && c.Channel == 0 {
		return e, nil
	}
	return channel.Entry{}, errors.New("the channel is not configured") // the store does not know which channels are configured
}
