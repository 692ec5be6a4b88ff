package delivery

import (
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/channel"
	"github.com/sendquota/sendquota/internal/pace"
	"github.com/sendquota/sendquota/internal/push"
)

// channelQueue holds the recipients whose channel cannot take their pushes at once: its speed is limited, its provider
// is down or asked for a pause, or it uses its share of the worker's slots. A recipient in the queue holds no slot, has
// not begun an attempt, and delays no other channel.
//
// Each worker has its own queue for each channel, and takes send times from the pacer that all workers share. The service
// levels have shares of them: see [sharing]. Of each level, tenants take turns; of each tenant, the longest due recipient
// comes first. While a tenant is held, its pushes wait in the queue, and the queue skips them: see [holds].
type channelQueue struct {
	channel string      // its route
	own     *ownChannel // nil: the channel is the operator's
	slots   *slots
	limit   int // number of recipients of each level in the queue

	mu      sync.Mutex
	speed   pace.Speed
	holds   holds
	waiting levelQueue
	texts   textSlots
	members map[member]bool
	busy    int // attempts and permits in progress
	unused  int // permits among them that no attempt has used yet
	closed  bool
	fed     map[fedFrom]*feeding
	changed chan struct{} // has an element when room may have changed
}

// member is a recipient in one level of the queue.
type member struct {
	recipient int64 // its key
	level     push.Level
}

func memberOf(d booking.Due) member { return member{d.RecipientKey, d.Rank.Level()} }

// A level of the queue holds as many recipients as can be sent to in two minutes. Rejected recipients are found again.
const (
	shortestQueue = 10_000
	queueTime     = 2 * time.Minute
)

// unusedTime bounds the unused permits by the time that they represent. While the worker or Postgres hangs, no more
// permits pile up: otherwise all of them would be used at once afterwards.
const unusedTime = 100 * time.Millisecond

// Every slotsWait, a queue without slots checks whether other channels have freed slots.
const slotsWait = 20 * time.Millisecond

// ownSlotsWait is slotsWait of the queue of a tenant's channel, which is signaled when a slot is free for it. It checks in case
// that its tenant had too many slots then.
const ownSlotsWait = 500 * time.Millisecond

// longestHold bounds the pause of a tenant or a channel that the provider asked for. The push itself waits for as long
// as the provider asked.
const longestHold = time.Hour

func newChannelQueue(e channel.Entry, s *slots) *channelQueue {
	q := &channelQueue{
		channel: e.Name, slots: s, limit: shortestQueue, holds: newHolds(0, 0),
		members: map[member]bool{}, fed: map[fedFrom]*feeding{}, changed: make(chan struct{}, 1),
	}
	q.configure(e)
	if e.Speed.Every > 0 {
		q.limit = max(q.limit, int(queueTime/e.Speed.Every))
	}
	return q
}

// configure takes over the settings of the channel. The caller has the lock.
func (q *channelQueue) configure(e channel.Entry) {
	q.speed = e.Speed
	q.holds.all.first, q.holds.all.longest = min(e.Retry.First, time.Second), min(e.Retry.Max, 30*time.Second)
	if q.waiting.shares = e.Shares; q.waiting.shares == (push.Shares{}) {
		q.waiting.shares = push.DefaultShares
	}
}

// pace returns the speed of the channel.
func (q *channelQueue) pace() pace.Speed {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.speed
}

// blocked reports whether the channel's pushes need a permit from the queue.
func (q *channelQueue) blocked() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.mustWait() || q.slots.left(q.busy) < 0
}

// mustWait reports whether the next recipient has to wait in the queue.
func (q *channelQueue) mustWait() bool {
	return q.own != nil || q.speed.Every > 0 || !q.holds.all.closed() || q.holds.some(time.Now(), q.waiting.of) || q.waiting.len() > 0
}

// tryOccupy occupies a slot if no recipient has to wait. The caller counts the attempt, or frees the slot.
func (q *channelQueue) tryOccupy() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.mustWait() || q.slots.left(q.busy) <= 0 {
		return false
	}
	q.occupy(1)
	return true
}

// open returns the number of pushes that may be sent now without waiting. waits reports whether recipients have to wait
// in the queue.
func (q *channelQueue) open() (n int, waits bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return max(q.slots.left(q.busy), 0), q.mustWait()
}

// idle reports whether the channel has no attempt in progress.
func (q *channelQueue) idle() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.busy == 0
}

// occupy counts attempts and permits, with their slots.
func (q *channelQueue) occupy(n int) {
	q.slots.change(q.busy, q.busy+n)
	q.busy += n
}

// len returns the number of recipients in the queue.
func (q *channelQueue) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waiting.len()
}

// add puts recipients into the queue, each at the level of its due push, unless the queue is closed. It drops a recipient if
// the level is full, or half full of its tenant, or if it has enough recipients of a held tenant; a dropped recipient is
// found again later. It returns the number of dropped recipients.
func (q *channelQueue) add(recipients ...booking.Due) (dropped int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, d := range recipients {
		level := q.waiting.at(d.Rank.Level())
		switch {
		case q.members[memberOf(d)]:
		case q.closed || level.len() >= q.limit || level.of(d.Tenant) >= q.limitOf(d.Tenant):
			dropped++
		default:
			q.members[memberOf(d)] = true
			q.waiting.push(d)
			q.signal()
		}
	}
	return dropped
}

// next takes the first recipient out of the queue, or a random one while a failed provider is tried again, because the
// first push may be the one that makes it fail. It takes none while the channel pauses, and none of a paused tenant:
// earlier permits are void.
func (q *channelQueue) next() (d booking.Due, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	if now.Before(q.holds.all.until) {
		return d, false
	}
	admitted := func(tenant uuid.UUID) bool {
		n, _ := q.holds.room(tenant, now)
		return n > 0
	}
	if d, ok = q.waiting.pop(admitted, !q.holds.all.closed(), q.holds.held); ok {
		q.holds.took(d.Tenant, now)
		delete(q.members, memberOf(d))
	}
	return d, ok
}

// correct takes back that a recipient was served for a level, because another level's push was sent to it, or none.
func (q *channelQueue) correct(served push.Level, sent ...push.Level) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting.serve(served, -1)
	for _, l := range sent {
		q.waiting.serve(l, 1)
	}
}

// count counts attempts and unused permits that begin or end.
func (q *channelQueue) count(busy, unused int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.occupy(busy)
	q.unused += unused
	q.signal()
}

// close closes the queue, and returns the longest due waiting recipient of each shard.
func (q *channelQueue) close() (longest map[int]booking.Due) {
	q.mu.Lock()
	defer q.mu.Unlock()
	longest = map[int]booking.Due{}
	q.waiting.all(func(d booking.Due) {
		shard := push.Shard(d.RecipientKey)
		if other, known := longest[shard]; !known || d.At.Before(other.At) {
			longest[shard] = d
		}
	})
	q.closed, q.waiting, q.members = true, levelQueue{sharing: sharing{shares: q.waiting.shares}}, nil
	return longest
}
