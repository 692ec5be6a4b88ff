package delivery

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/channel"
	"github.com/sendquota/sendquota/internal/pace"
	"github.com/sendquota/sendquota/internal/push"
)

// Every channel that a tenant has made has a queue of its own, with its speed, shares, breaker and pauses, while pushes wait
// for it. All pushes through it take a permit from the queue.

// ownChannel is what a queue knows of the tenant's channel. Queues of the operator's channels have none.
type ownChannel struct {
	tenant uuid.UUID
	name   string
	held   func(of uuid.UUID) time.Time  // until when other workers were asked to pause; see pauseOf
	find   func() (channel.Entry, error) // the channel as it is now; an error: its pushes wait
	stop   context.CancelFunc

	// The fields below are guarded by the queue's mutex.
	version int64     // of the channel
	usable  bool      // as far as is known
	backlog bool      // more pushes may be due than the queue holds
	usedAt  time.Time // when the queue was last not empty
}

const (
	// OwnLabel is the channel in metrics of all channels that tenants have made.
	OwnLabel = "(tenant)"
	// ownLimit is the number of recipients of each level in the queue of a tenant's channel.
	ownLimit = 2 * feedPage
	// refreshEvery bounds the time after which a queue notices that its channel was changed.
	refreshEvery = 250 * time.Millisecond
	// unusablePause is the time after which a channel that cannot be used is tried again.
	unusablePause = time.Second
	// ownIdle is the time after which a queue without recipients is forgotten.
	ownIdle = time.Minute
)

var errNotConfigured = errors.New("the channel is not configured")

// newOwnQueue returns the queue of a tenant's channel. Until it has found the channel, it gives no permits.
func newOwnQueue(route string, own *ownChannel, s *slots) *channelQueue {
	q := newChannelQueue(channel.Entry{Name: route, Retry: push.Retry{First: time.Second, Max: 30 * time.Second}}, s)
	q.own, q.limit, q.holds.apart = own, ownLimit, true
	own.usable, own.usedAt = true, time.Now()
	return q
}

// refresh takes over the settings of a tenant's channel, and reports whether it can be used.
func (q *channelQueue) refresh() bool {
	if q.own == nil {
		return true
	}
	e, err := q.own.find()
	held := q.own.held(pauseOf(q.channel, e.Version))
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.own.usable = err == nil; !q.own.usable {
		return false
	}
	q.configure(e)
	if q.own.version != 0 && q.own.version != e.Version { // what an earlier provider asked for is over
		clear(q.holds.tenants)
	}
	q.own.version = e.Version
	if now := time.Now(); held.After(now) {
		q.holds.hold(q.own.tenant, held, now)
	}
	return true
}

// sharedPause names the queue's channel, as it is now, in the pauses that workers share.
func (q *channelQueue) sharedPause() uuid.UUID {
	q.mu.Lock()
	defer q.mu.Unlock()
	return pauseOf(q.channel, q.own.version)
}

// await waits for a time slot. It reports whether the slot can be used: the tenant's channel has the same speed.
func (q *channelQueue) await(ctx context.Context, s pace.Speed, wait time.Duration) bool {
	for ; q.own != nil && wait > refreshEvery; wait -= refreshEvery {
		if !pause(ctx, nil, refreshEvery) || !q.refresh() || q.pace() != s {
			return false
		}
	}
	return pause(ctx, nil, wait)
}

// label returns the channel in metrics.
func (q *channelQueue) label() string {
	if q.own != nil {
		return OwnLabel
	}
	return q.channel
}

// name returns the name of the channel.
func (q *channelQueue) name() string {
	if q.own != nil {
		return q.own.name
	}
	return q.channel
}

// labelOf returns the channel of a push in metrics, whose labels must be few.
func labelOf(p *push.Push) string {
	if p.Own {
		return OwnLabel
	}
	return p.Channel
}

// channelOf returns the channel for a claimed push: the tenant's own, or the operator's if the tenant has none of that name.
func (w *Worker) channelOf(c booking.Claim) (channel.Entry, error) {
	if w.cfg.Own != nil {
		return w.cfg.Own.Claimed(c.Push.Tenant, c.Push.Channel, c.Channel)
	}
	if e, known := w.channels.Get(c.Push.Channel); known && c.Channel == 0 {
		return e, nil
	}
	return channel.Entry{}, errNotConfigured // the store does not know which channels are configured
}

var errReplaced = errors.New("the tenant has a channel of that name now")

// channelNow returns the channel for a push that was claimed a while ago: the tenant may have changed its channels meanwhile. The
// claim may have found none of that name: then one that is there now is an error.
func channelNow(all OwnChannels, c booking.Claim) (channel.Entry, error) {
	all.Refresh(c.Push.Tenant)
	if c.Channel == 0 {
		if _, own, err := all.Get(c.Push.Tenant, c.Push.Channel); own {
			return channel.Entry{}, cmp.Or(err, errReplaced)
		}
	}
	return all.Claimed(c.Push.Tenant, c.Push.Channel, c.Channel)
}
