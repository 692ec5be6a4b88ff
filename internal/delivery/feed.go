package delivery

import (
	"context"
	"slices"
	"time"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
)

// The owner of a lane puts those of its recipients into the queues of channels whose pushes have to wait there. It looks
// often while a queue is nearly empty and something is found, and otherwise reads on, a page a second, behind what it has
// read: so tenants behind the thousands of another one get their turn, too, also if that one is held. While nothing that
// it reads finds a place, it reads more rarely.
const (
	feedInterval     = 200 * time.Millisecond
	feedPause        = time.Second
	longestFeedPause = 4 * time.Second
	feedPage         = 1000
	nearlyEmpty      = 500
)

// wokenPage are the recipients that a wake-up puts into the queue of a channel at once.
const wokenPage = 256

// feeding is how far a queue has been fed from a lane.
type feeding struct {
	behind booking.Due   // the last one that was read; zero: begin with the first
	found  bool          // there was something to read
	passed bool          // a queue that is nearly empty dropped some of it: they are of tenants that are held
	pause  time.Duration // until it reads on
	next   time.Time     // when to read on
}

// feed reads one page of each lane that this worker owns. It is never full: the next pass comes soon.
func (w *Worker) feed(ctx context.Context) (full bool, err error) {
	if w.cfg.Due != nil && !w.cfg.Due() {
		return false, nil
	}
	for _, l := range w.cfg.Lanes() {
		if err := w.feedFrom(ctx, l); err != nil {
			return false, err
		}
	}
	return false, nil
}

func (w *Worker) feedFrom(ctx context.Context, l push.Lane) error {
	o := booking.DueOrder{Lane: l}
	for _, q := range w.queues.all {
		if behind, hungry := q.hungry(l, time.Now()); hungry {
			o.Channels = append(o.Channels, booking.DueChannel{Name: q.channel, Most: feedPage, Behind: behind})
			o.Most += 2 * feedPage
		}
	}
	if len(o.Channels) == 0 {
		return nil
	}
	o.Without = w.delayedIn(l)
	due, _, err := w.store.Due(ctx, o)
	if err != nil {
		return err
	}
	pages := map[string][]booking.Due{}
	for _, d := range due {
		pages[d.Channel] = append(pages[d.Channel], d)
	}
	for _, c := range o.Channels {
		w.queues.byName[c.Name].feed(l, pages[c.Name])
	}
	return nil
}

// feedWoken puts what has been due in a lane since a time into the queues of channels: for a worker that was woken, whether
// or not it owns the lane. These are the channels in whose queues it has to wait, or had to when the lane was looked at
// last: all but those that were asked for then.
func (w *Worker) feedWoken(ctx context.Context, l push.Lane, from time.Time, asked []booking.DueChannel) error {
	o := booking.DueOrder{Lane: l, From: from}
	for _, q := range w.queues.all {
		if q.takes() || !slices.ContainsFunc(asked, func(c booking.DueChannel) bool { return c.Name == q.channel }) {
			o.Channels = append(o.Channels, booking.DueChannel{Name: q.channel, Most: wokenPage})
			o.Most += wokenPage
		}
	}
	if len(o.Channels) == 0 {
		return nil
	}
	o.Without = w.delayedIn(l)
	due, _, err := w.store.Due(ctx, o)
	count := map[string]int{}
	for _, d := range due {
		w.queues.byName[d.Channel].add(d)
		if count[d.Channel]++; count[d.Channel] == wokenPage {
			w.limit(d.Channel, l)
		}
	}
	return err
}

// takes reports whether recipients have to wait in the queue, and it has room for more.
func (q *channelQueue) takes() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return !q.closed && q.mustWait() && q.waiting.len() < q.limit
}

// hungry reports whether the queue is to be fed from a lane now, and from where on.
func (q *channelQueue) hungry(l push.Lane, now time.Time) (behind booking.Due, yes bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || !q.mustWait() || q.waiting.len() >= q.limit {
		return behind, false
	}
	f := q.fed[l]
	if f == nil {
		f = &feeding{}
		q.fed[l] = f
	}
	later := !now.Before(f.next)
	if q.waiting.len() < nearlyEmpty && !f.passed {
		return behind, f.found || later
	}
	return f.behind, later
}

// feed adds what was read from a lane, and notes how far that was.
func (q *channelQueue) feed(l push.Lane, due []booking.Due) {
	dropped := q.add(due...)
	q.mu.Lock()
	defer q.mu.Unlock()
	f := q.fed[l]
	f.pause = min(2*f.pause, longestFeedPause)
	if f.pause == 0 || dropped < len(due) || len(due) == 0 {
		f.pause = feedPause
	}
	f.found, f.behind, f.next = len(due) > 0, booking.Due{}, time.Now().Add(f.pause)
	f.passed = dropped > 0 && q.waiting.len() < nearlyEmpty
	if len(due) >= feedPage { // of each kind there is a page at most
		f.behind = due[feedPage-1]
	}
}
