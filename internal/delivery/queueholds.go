package delivery

import (
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/channelhealth"
)

// heldQueue is the number of a held tenant's recipients that stay in the queue. The others make room for other tenants,
// and are found again.
const heldQueue = 2 * trialsToClose

// limitOf returns the maximum number of a tenant's recipients in a level of the queue.
func (q *channelQueue) limitOf(tenant uuid.UUID) int {
	limit := q.limit / 2
	if q.own != nil {
		limit = q.limit
	}
	if q.holds.held(tenant) || q.own != nil && !q.own.usable {
		return min(heldQueue, limit)
	}
	return limit
}

// breakerState is the state of a breaker, and the end of its pause.
type breakerState struct {
	closed bool
	until  time.Time
}

// opened reports whether a breaker has opened, or opened again, since before.
func (s breakerState) opened(before breakerState) bool { return s.until.After(before.until) }

// states returns the states of the breakers of a tenant and of the channel.
func (q *channelQueue) states(tenant uuid.UUID) (one, all breakerState) {
	one.closed = true
	if b := q.holds.tenants[tenant]; b != nil {
		one = breakerState{b.closed(), b.until}
	}
	return one, breakerState{q.holds.all.closed(), q.holds.all.until}
}

// report updates the breakers by the result of a tenant's attempt, and returns the states of the breakers of the tenant
// and of the channel before and after it.
func (q *channelQueue) report(tenant uuid.UUID, failed bool) (one, all [2]breakerState) {
	q.mu.Lock()
	defer q.mu.Unlock()
	one[0], all[0] = q.states(tenant)
	q.holds.ended(tenant, failed, time.Now())
	one[1], all[1] = q.states(tenant)
	q.trim(tenant)
	q.signal()
	return one, all
}

// hold pauses a tenant for d, and returns the remaining pause of the channel.
func (q *channelQueue) hold(tenant uuid.UUID, d time.Duration) (all time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	q.holds.hold(tenant, now.Add(d), now)
	q.trim(tenant)
	q.signal()
	return max(q.holds.all.until.Sub(now), 0)
}

// trim drops the recipients of a tenant beyond its limit in each level of the queue.
func (q *channelQueue) trim(tenant uuid.UUID) {
	for _, d := range q.waiting.cut(tenant, q.limitOf(tenant)) {
		delete(q.members, memberOf(d))
	}
}

// held returns the remaining pause of the channel, and the number of tenants that are held.
func (q *channelQueue) held() (all time.Duration, tenants int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for tenant := range q.holds.tenants {
		if q.holds.held(tenant) {
			tenants++
		}
	}
	return max(time.Until(q.holds.all.until), 0), tenants
}

// views returns the worker's view of the channel, and of the tenants that are held.
func (q *channelQueue) views() []channelhealth.View {
	q.mu.Lock()
	defer q.mu.Unlock()
	views := q.holds.views(q.channel, time.Now())
	if q.own == nil {
		return views
	}
	views = views[1:] // besides the one of all tenants
	for i := range views {
		views[i].Channel = channelhealth.OwnChannel(q.own.name)
	}
	return views
}

// ready returns the number of waiting recipients that may be tried now, or else the wait until one may.
func (q *channelQueue) ready(now time.Time) (n int, wait time.Duration) {
	n = q.waiting.len()
	for tenant := range q.holds.tenants {
		waiting := q.waiting.of(tenant)
		room, in := q.holds.room(tenant, now)
		if room >= waiting {
			continue
		}
		if n -= waiting - room; room == 0 && (wait == 0 || in < wait) {
			wait = in
		}
	}
	return n, wait
}
