package delivery

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/channel"
	"github.com/sendquota/sendquota/internal/channelhealth"
)

// OwnChannels finds the channels that tenants have made.
type OwnChannels interface {
	// Claimed returns the channel for a push that was claimed, by the version of the tenant's own channel of that name; 0: the
	// channel is the operator's.
	Claimed(tenant uuid.UUID, name string, version int64) (channel.Entry, error)

	// Get returns the channel of a name for a tenant, and whether it is the tenant's own, or may be. With an error, pushes wait.
	Get(tenant uuid.UUID, name string) (e channel.Entry, own bool, err error)

	// Refresh has a tenant's channels read again before their next use.
	Refresh(tenant uuid.UUID)

	// InUse reports whether any tenant may have a channel.
	InUse() bool
}

// ownQueues are the queues of the channels that tenants have made, by their routes. There is one while a channel has
// something to send. It is safe for concurrent use.
type ownQueues struct {
	channels OwnChannels
	run      func(ctx context.Context, q *channelQueue)
	forget   func(q *channelQueue)

	work    context.Context // of the queues
	close   context.CancelFunc
	running sync.WaitGroup

	mu      sync.Mutex
	byRoute map[string]*channelQueue
	tenants map[uuid.UUID]*ownTenant
	held    map[uuid.UUID]time.Time // ends of pauses that other workers were asked for, by pauseOf
	free    *atomic.Int64           // slots for all of them
	waiting slotQueue               // for a slot
	closed  bool
}

// maxOwnViews bounds the channels of tenants that a worker shows.
const maxOwnViews = 1000

// ownTenant is a tenant that uses channels of its own.
type ownTenant struct {
	queues int
	slots  *slots
}

// newOwnQueues returns the queues of a worker with allSlots slots. Their attempts use half of these, so that the operator's
// channels have the others.
func newOwnQueues(channels OwnChannels, allSlots int) *ownQueues {
	qs := &ownQueues{
		channels: channels, byRoute: map[string]*channelQueue{}, tenants: map[uuid.UUID]*ownTenant{}, held: map[uuid.UUID]time.Time{}, free: &atomic.Int64{},
		waiting: slotQueue{in: map[*channelQueue]bool{}},
	}
	qs.work, qs.close = context.WithCancel(context.Background())
	qs.free.Store(int64(max(allSlots/2, 1)))
	return qs
}

// get returns the queue of a route, or nil if there is none.
func (qs *ownQueues) get(route string) *channelQueue {
	if qs == nil {
		return nil
	}
	qs.mu.Lock()
	defer qs.mu.Unlock()
	return qs.byRoute[route]
}

// begin returns the queue of a route. It returns nil if the worker stops, or if the route is none of a tenant's channel.
func (qs *ownQueues) begin(route string) *channelQueue {
	tenant, name, own := booking.OwnerOf(route)
	if qs == nil || !own {
		return nil
	}
	qs.mu.Lock()
	defer qs.mu.Unlock()
	q := qs.byRoute[route]
	if q != nil || qs.closed {
		return q
	}
	t := qs.tenants[tenant]
	if t == nil {
		t = &ownTenant{slots: newTenantSlots(qs.free, &qs.waiting)}
		qs.tenants[tenant] = t
	}
	t.queues++
	ctx, stop := context.WithCancel(qs.work)
	q = newOwnQueue(route, &ownChannel{tenant: tenant, name: name, held: qs.heldUntil, stop: stop, find: func() (channel.Entry, error) {
		e, own, err := qs.channels.Get(tenant, name)
		if !own { // it was deleted: claims find out, and cancel the pushes
			return channel.Entry{}, nil
		}
		return e, err
	}}, t.slots)
	qs.byRoute[route] = q
	qs.running.Go(func() { qs.run(ctx, q) })
	return q
}

// add puts recipients into the queues of their routes.
func (qs *ownQueues) add(due ...booking.Due) {
	for _, d := range due {
		if q := qs.begin(d.Channel); q != nil && q.add(d) > 0 {
			q.expect(true)
		}
	}
}

// list returns the queues.
func (qs *ownQueues) list() []*channelQueue {
	if qs == nil {
		return nil
	}
	qs.mu.Lock()
	defer qs.mu.Unlock()
	return slices.Collect(maps.Values(qs.byRoute))
}

// forgetIdle ends the queues that have had nothing to do for a while.
func (qs *ownQueues) forgetIdle(now time.Time) {
	if qs == nil {
		return
	}
	qs.mu.Lock()
	defer qs.mu.Unlock()
	for route, q := range qs.byRoute {
		if !q.endIfIdle(now) {
			continue
		}
		delete(qs.byRoute, route)
		if t := qs.tenants[q.own.tenant]; t.queues == 1 {
			delete(qs.tenants, q.own.tenant)
		} else {
			t.queues--
		}
		q.own.stop()
		qs.forget(q)
	}
	maps.DeleteFunc(qs.held, func(_ uuid.UUID, until time.Time) bool { return !now.Before(until) })
}

// pauseOf names a version of the channel of a route in the pauses that workers share.
func pauseOf(route string, version int64) uuid.UUID {
	return uuid.NewSHA1(uuid.Nil, fmt.Appendf(nil, "%s %d", route, version))
}

// hold notes that another worker was asked to pause. The queue finds it before it gives permits: thousands of queues need not be
// looked through.
func (qs *ownQueues) hold(of uuid.UUID, left time.Duration) {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	qs.held[of] = time.Now().Add(left)
}

// heldUntil returns the end of a pause that another worker was asked for; zero: there is none.
func (qs *ownQueues) heldUntil(of uuid.UUID) time.Time {
	qs.mu.Lock()
	defer qs.mu.Unlock()
	return qs.held[of]
}

// views returns the worker's view of the channels of tenants: one of all of them, and those of some that are held.
func (qs *ownQueues) views() []channelhealth.View {
	views := []channelhealth.View{{Channel: channelhealth.OwnChannel(""), State: channelhealth.Working}}
	for _, q := range qs.list() {
		views = append(views, q.views()...)
	}
	slices.SortFunc(views[1:], func(a, b channelhealth.View) int {
		return cmp.Or(cmp.Compare(a.Tenant.String(), b.Tenant.String()), cmp.Compare(a.Channel, b.Channel))
	})
	return views[:min(len(views), maxOwnViews)]
}

// stop ends all queues, and waits until they give no more permits.
func (qs *ownQueues) stop() {
	if qs == nil {
		return
	}
	qs.mu.Lock()
	qs.closed = true
	qs.mu.Unlock()
	qs.close()
	qs.running.Wait()
}

// expect notes whether more pushes may be due than the queue holds.
func (q *channelQueue) expect(backlog bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.own.backlog = backlog
}

// endIfIdle closes the queue if it has had nothing to do for a while. If it has a backlog in spite of that, it begins again.
func (q *channelQueue) endIfIdle(now time.Time) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.busy > 0 || q.waiting.len() > 0 || q.holds.some(now, q.waiting.of) {
		q.own.usedAt = now
	}
	q.closed = now.Sub(q.own.usedAt) > ownIdle
	return q.closed
}
