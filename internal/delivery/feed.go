package delivery

import (
	"context"
	"slices"
	"time"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
)

// The owner of a lane feeds the queues of channels with the lane's recipients whose pushes have to wait there. While a
// queue is nearly empty and recipients are found, it reads often. Otherwise it reads one page a second, after the last
// page, so that tenants behind the thousands of another one get their turn, even if that one is held. While no
// recipient that it reads finds a place, it reads less often.
const (
	feedInterval     = 200 * time.Millisecond
	feedPause        = time.Second
	longestFeedPause = 4 * time.Second
	feedPage         = 1000
	nearlyEmpty      = 500
)

// wokenPage is the number of recipients that a wake-up adds to a channel's queue at once.
const wokenPage = 256

// fedFrom is a level of a lane, from which a queue is fed.
type fedFrom struct {
	push.Lane
	level push.Level
}

// feeding is the progress of feeding a queue from a level of a lane.
type feeding struct {
	behind booking.Due   // the last recipient read; zero: begin with the first
	found  bool          // the last page was not empty
	passed bool          // a nearly empty queue dropped recipients, because their tenants are held
	pause  time.Duration // until the next page
	next   time.Time     // when to read the next page
}

// feed reads one page of each lane that this worker owns. It is never full, because the next pass comes soon.
func (w *Worker) feed(ctx context.Context) (full bool, err error) {
	w.queues.own.forgetIdle(time.Now())
	if w.cfg.Due != nil && !w.cfg.Due() {
		return false, nil
	}
	for _, l := range w.cfg.Lanes() {
		if err := w.feedFrom(ctx, l); err != nil {
			return false, err
		}
	}
	return false, w.feedOwn(ctx, w.cfg.Lanes())
}

func (w *Worker) feedFrom(ctx context.Context, l push.Lane) error {
	o := booking.DueOrder{Lane: l}
	for _, q := range w.queues.all {
		for _, level := range push.Levels {
			if behind, hungry := q.hungry(fedFrom{l, level}, time.Now()); hungry {
				o.Channels = append(o.Channels, booking.DueChannel{Name: q.channel, Levels: []push.Level{level}, Most: feedPage, Behind: behind})
				o.Most += 2 * feedPage
			}
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
	type page struct {
		channel string
		level   push.Level
	}
	pages := map[page][]booking.Due{}
	for _, d := range due {
		of := page{d.Channel, d.Rank.Level()}
		pages[of] = append(pages[of], d)
	}
	for _, c := range o.Channels {
		level := c.Levels[0]
		w.queues.byName[c.Name].feed(fedFrom{l, level}, pages[page{c.Name, level}], feedPage)
	}
	return nil
}

// feedWoken adds a lane's recipients that became due since a time to the queues of channels: for a worker that was
// woken, whether or not it owns the lane. It covers the channels whose pushes must wait, or had to when the lane was
// last claimed from: all but the channels asked for then.
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
			w.limited.add(d.Channel, l)
		}
	}
	return err
}

// takes reports whether recipients have to wait in the queue, and it has room for more.
func (q *channelQueue) takes() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return !q.closed && q.mustWait() && slices.ContainsFunc(push.Levels[:], func(l push.Level) bool { return q.waiting.at(l).len() < q.limit })
}

// hungry reports whether the queue is to be fed from a level of a lane now, and after which recipient.
func (q *channelQueue) hungry(from fedFrom, now time.Time) (behind booking.Due, yes bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := q.waiting.at(from.level).len()
	if q.closed || !q.mustWait() || n >= q.limit || q.own != nil && !(q.own.backlog && (q.own.usable || n == 0)) {
		return behind, false
	}
	f := q.fed[from]
	if f == nil {
		f = &feeding{}
		q.fed[from] = f
	}
	later := !now.Before(f.next)
	if n < nearlyEmpty && !f.passed {
		return behind, f.found || later
	}
	return f.behind, later
}

// feed adds a page of recipients from a level of a lane, with page of each rank at most, and updates the progress.
func (q *channelQueue) feed(from fedFrom, due []booking.Due, page int) {
	dropped := q.add(due...)
	q.mu.Lock()
	defer q.mu.Unlock()
	f := q.fed[from]
	f.pause = min(2*f.pause, longestFeedPause)
	if f.pause == 0 || dropped < len(due) || len(due) == 0 {
		f.pause = feedPause
	}
	f.found, f.behind, f.next = len(due) > 0, booking.Due{}, time.Now().Add(f.pause)
	f.passed = dropped > 0 && q.waiting.at(from.level).len() < nearlyEmpty
	if len(due) >= page {
		f.behind = due[page-1]
	}
}
