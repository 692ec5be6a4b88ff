package delivery

import (
	"context"
	"math"
	"time"

	"github.com/sendquota/sendquota/internal/pace"
)

// signal makes run check the queue again.
func (q *channelQueue) signal() {
	select {
	case q.changed <- struct{}{}:
	default:
	}
}

// run calls permit for each permit that the queue can give, until ctx ends. The permit is already counted.
func (q *channelQueue) run(ctx context.Context, p pacer, permit func()) {
	for {
		n, wait := q.room()
		if q.own != nil && wait > unusablePause { // the tenant may change the channel meanwhile
			q.refresh()
			wait = unusablePause
		}
		switch {
		case n == 0 && !pause(ctx, q.changed, wait):
			return
		case n == 0:
			continue
		case !q.refresh():
			if !pause(ctx, nil, unusablePause) {
				return
			}
			continue
		}
		if s := q.pace(); s.Every > 0 {
			n, wait = q.take(ctx, p, s, n)
			if !q.await(ctx, s, wait) {
				if ctx.Err() != nil {
					return
				}
				continue
			}
		}
		left, _ := q.room() // meanwhile the provider may be down, the queue empty, or the slots in use
		n = min(n, left)
		for range n {
			q.count(1, 1)
			permit()
		}
	}
}

// take takes send times from the pacer, and exchanges with other workers what the levels were served.
func (q *channelQueue) take(ctx context.Context, p pacer, speed pace.Speed, n int) (slots int, wait time.Duration) {
	q.mu.Lock()
	demand, each := q.waiting.demand(q.waiting.waits), q.eachText()
	q.mu.Unlock()
	s := p.Take(ctx, pace.Order{Channel: q.channel, Speed: speed, Wanted: n, Each: each, Demand: demand})
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting.learn(s.Tags, demand)
	q.texts.paid += each * s.Taken
	return s.Taken, s.Wait
}

// room returns the number of permits that can be given now, or else the maximum wait for one; zero: until something
// changes.
func (q *channelQueue) room() (permits int, wait time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waiting.len() == 0 {
		return 0, 0
	}
	now := time.Now()
	tried, wait := q.holds.all.room(now, math.MaxInt)
	ready, later := q.ready(now)
	if ready == 0 {
		return 0, max(wait, later)
	}
	room := min(tried-q.busy, ready)
	if q.speed.Every > 0 {
		room = min(room, q.mostUnused()-q.unused)
	}
	left := q.slots.left(q.busy) // read once: other channels change it
	if room > 0 && left <= 0 {
		if q.slots.queue == nil {
			return 0, slotsWait
		}
		q.slots.queue.add(q)
		if left = q.slots.left(q.busy); left <= 0 { // no slot became free before it was added
			return 0, ownSlotsWait
		}
	}
	return max(min(room, left), 0), wait
}

// pause waits for d, or until something changes; with d = 0, only until then. It reports whether ctx is still valid.
func pause(ctx context.Context, changed <-chan struct{}, d time.Duration) bool {
	var after <-chan time.Time
	if d > 0 || changed == nil {
		timer := time.NewTimer(d)
		defer timer.Stop()
		after = timer.C
	}
	select {
	case <-ctx.Done():
		return false
	case <-changed:
	case <-after:
	}
	return ctx.Err() == nil
}
