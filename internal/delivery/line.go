package delivery

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/channel"
	"github.com/sendquota/sendquota/internal/pace"
	"github.com/sendquota/sendquota/internal/push"
)

// line is where recipients wait for a turn at a channel that can not take their
// pushes at once: because its speed is limited, its provider is down or asked
// for a pause, or because it has its share of the worker's places. Who waits in
// line holds no place, has not begun an attempt, and holds up no other channel.
//
// Each worker has a line of its own for each channel, and takes slots from the
// pacer that all share. Tenants take turns; of each, the longest due come first.
type line struct {
	channel string
	speed   pace.Speed
	places  *places
	limit   int // of those who wait

	mu      sync.Mutex
	breaker breaker
	waiting fairQueue
	members map[int64]bool // their recipient keys
	busy    int            // attempts and turns under way
	turns   int            // of these, turns that nobody has used yet
	closed  bool
	changed chan struct{} // has an element when there may be something to do
}

// Those who find no room in a line are woken again when their wake-up is
// believed to be lost, a minute later. The line holds what can be sent until
// then, and as much again.
const (
	shortestLine = 10_000
	lineTime     = 2 * time.Minute
)

// unusedTime is for how long turns may be given before they are used. If the
// worker or Postgres stands still, no more turns pile up: they would all be used
// at once when it goes on.
const unusedTime = 100 * time.Millisecond

// placesWait is how often a line looks whether other channels have left places.
const placesWait = 20 * time.Millisecond

// longestHold is how long a channel pauses at most because its provider asked
// for it; the push itself waits for as long as it was told to.
const longestHold = time.Hour

func newLine(e channel.Entry, p *places) *line {
	l := &line{
		channel: e.Name, speed: e.Speed, places: p, limit: shortestLine,
		breaker: breaker{first: min(e.Retry.First, time.Second), longest: min(e.Retry.Max, 30*time.Second)},
		members: map[int64]bool{}, changed: make(chan struct{}, 1),
	}
	if e.Speed.Every > 0 {
		l.limit = max(l.limit, int(lineTime/e.Speed.Every))
	}
	return l
}

// shut reports whether pushes have to wait in line.
func (l *line) shut() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.behind() || l.places.left(l.busy) < 0
}

// behind reports whether whoever comes has to get in line.
func (l *line) behind() bool {
	return l.speed.Every > 0 || !l.breaker.closed() || l.waiting.len() > 0
}

// enter begins a turn at once, where nobody has to wait in line.
func (l *line) enter() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.behind() || l.places.left(l.busy) <= 0 {
		return false
	}
	l.occupy(1)
	l.turns++
	return true
}

// occupy counts attempts and turns, with their places.
func (l *line) occupy(n int) {
	l.places.change(l.busy, l.busy+n)
	l.busy += n
}

// many lists the tenants of which so many wait.
func (l *line) many(n int) []uuid.UUID {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waiting.many(n)
}

// len is how many wait in line.
func (l *line) len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waiting.len()
}

// join has a recipient wait in line. It fails when the line is closed for good.
// Where the line is full, half of it of one tenant, the recipient is left to be woken
// again.
func (l *line) join(w push.WakeUp) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	if !l.members[w.RecipientKey] && l.waiting.len() < l.limit && l.waiting.of(w.Tenant) < l.limit/2 {
		l.members[w.RecipientKey] = true
		l.waiting.push(w)
		l.change()
	}
	return true
}

// next takes the first out of the line; while a provider is tried again, anyone:
// the first may be what it can not stand.
func (l *line) next() (w push.WakeUp, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.waiting.len() == 0:
		return w, false
	case l.breaker.closed():
		w = l.waiting.pop()
	default:
		w = l.waiting.popAny()
	}
	delete(l.members, w.RecipientKey)
	return w, true
}

// count counts attempts and turns that begin, or end.
func (l *line) count(busy, turns int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.occupy(busy)
	l.turns += turns
	l.change()
}

// judge takes note of how an attempt ended, and reports what that changed.
func (l *line) judge(trouble bool) (opened, closed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before, until := l.breaker.closed(), l.breaker.until
	l.breaker.ended(trouble, time.Now())
	l.change()
	return l.breaker.until != until, !before && l.breaker.closed()
}

// hold leaves the channel alone for a while.
func (l *line) hold(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.breaker.hold(time.Now().Add(d))
	l.change()
}

// held is for how long the channel is still left alone.
func (l *line) held() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return max(time.Until(l.breaker.until), 0)
}

// change has the line looked at.
func (l *line) change() {
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// run gives turns to those who wait, until ctx ends. A turn has begun when it
// is given.
func (l *line) run(ctx context.Context, p pacer, turn func()) {
	for {
		n, wait := l.room()
		switch {
		case n == 0 && !pause(ctx, l.changed, wait):
			return
		case n == 0:
			continue
		case l.speed.Every > 0:
			n, wait = p.Take(ctx, l.channel, l.speed, n)
			if !pause(ctx, nil, wait) {
				return
			}
			if left, _ := l.room(); left == 0 || n == 0 {
				continue // the provider went down, or nobody waits any more; or there was no slot
			}
		}
		for range n {
			l.count(1, 1)
			turn()
		}
	}
}

// room is how many turns can be given now, or else how long to wait for that at
// most; zero: until something changes.
func (l *line) room() (turns int, wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting.len() == 0 {
		return 0, 0
	}
	tried, wait := l.breaker.room(time.Now(), math.MaxInt)
	room := min(tried-l.busy, l.waiting.len())
	if l.speed.Every > 0 {
		room = min(room, max(int(unusedTime/l.speed.Every), l.speed.Burst, 1)-l.turns)
	}
	if room > 0 && l.places.left(l.busy) <= 0 {
		return 0, placesWait
	}
	return max(min(room, l.places.left(l.busy)), 0), wait
}

// pause waits for so long, or until something changes; without a time, until
// then. It reports whether ctx goes on.
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

// close closes the line for good, and returns who still waited.
func (l *line) close() (recipientKeys []int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.waiting.all(func(w push.WakeUp) { recipientKeys = append(recipientKeys, w.RecipientKey) })
	l.waiting, l.members = fairQueue{}, nil
	return recipientKeys
}
