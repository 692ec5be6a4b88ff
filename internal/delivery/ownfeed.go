package delivery

import (
	"context"
	"time"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
)

// A worker that is woken adds the pushes through channels of tenants that have just become due to the queues of these
// channels. The owner of lanes looks at all channels of tenants in turn, for pushes that were missed, and feeds the queues of
// channels with a backlog from its lanes.

const (
	// freshPage is the number of pushes of each rank through channels of tenants that a wake-up adds to queues.
	freshPage = 2000
	// freshTime is the time since when pushes are fresh, for a wake-up without a time.
	freshTime = 5 * time.Second
	// routesPage is the number of channels that the owner looks at in one pass.
	routesPage = 1000
	// fedAtOnce is the number of pages that the owner reads in one pass, and fedPushes that of the pushes in all of them.
	fedAtOnce = 1000
	fedPushes = 20_000
	// ownPage is the largest number of pushes of each rank in a page.
	ownPage = 200
)

// routesSeen is the progress of looking at the channels of tenants.
type routesSeen struct {
	after string    // the last one
	next  time.Time // when to look at the next ones
}

// addFresh adds the pushes of a lane through channels of tenants that became due since a time to the queues of these
// channels. The owner of the lane finds older ones.
func (w *Worker) addFresh(ctx context.Context, l push.Lane, from time.Time) error {
	if w.queues.own == nil || !w.cfg.Own.InUse() {
		return nil
	}
	if from.IsZero() {
		from = time.Now().Add(-freshTime)
	}
	due, _, err := w.store.Due(ctx, booking.DueOrder{
		Lane: l, From: from, Channels: []booking.DueChannel{{Name: booking.OwnRoute, Most: freshPage}}, Without: w.delayedIn(l), Most: len(push.Levels) * 2 * freshPage,
	})
	w.queues.own.add(due...)
	return err
}

// feedOwn looks at some channels of tenants, and feeds queues. Only one pass at a time runs.
func (w *Worker) feedOwn(ctx context.Context, lanes []push.Lane) error {
	if w.queues.own == nil || !w.cfg.Own.InUse() {
		return nil
	}
	if len(lanes) == 0 {
		return nil
	}
	now := time.Now()
	if seen := &w.routes; !now.Before(seen.next) {
		due, last, err := w.store.OwnRoutes(ctx, booking.OwnRoutesOrder{Lanes: lanes, After: seen.after, Limit: routesPage})
		if err != nil {
			return err
		}
		for _, route := range due {
			if q := w.queues.own.begin(route); q != nil {
				q.expect(true)
			}
		}
		if seen.after = last; last == "" {
			seen.next = now.Add(feedPause)
		}
	}
	return w.feedBacklogs(ctx, lanes, now)
}

// feedBacklogs reads a page for each hungry level of some queues.
func (w *Worker) feedBacklogs(ctx context.Context, lanes []push.Lane, now time.Time) error {
	type fed struct {
		queue *channelQueue
		from  fedFrom
		page  []booking.Due
	}
	var (
		feeds []*fed
		o     = booking.OwnDueOrder{Lanes: lanes}
		of    = map[string]*fed{} // by route and level
	)
	for _, q := range w.queues.own.list() { // in a random order
		for _, level := range push.Levels {
			from := fedFrom{level: level}
			behind, hungry := q.hungry(from, now)
			if !hungry || len(feeds) == fedAtOnce {
				continue
			}
			f := &fed{queue: q, from: from}
			feeds, of[q.channel+level.String()] = append(feeds, f), f
			o.Channels = append(o.Channels, booking.DueChannel{Name: q.channel, Levels: []push.Level{level}, Behind: behind})
		}
	}
	if len(feeds) == 0 {
		return nil
	}
	page := min(fedPushes/len(feeds), ownPage)
	for i := range o.Channels {
		o.Channels[i].Most = page
	}
	for _, l := range lanes {
		o.Without = append(o.Without, w.delayedIn(l)...)
	}
	due, err := w.store.OwnDue(ctx, o)
	if err != nil {
		return err
	}
	for _, d := range due {
		f := of[d.Channel+d.Rank.Level().String()]
		f.page = append(f.page, d)
	}
	for _, f := range feeds {
		f.queue.feed(f.from, f.page, page)
		f.queue.fedAll()
	}
	return nil
}

// fedAll notes that the queue has no backlog any more if the last pages of all levels were empty.
func (q *channelQueue) fedAll() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, level := range push.Levels {
		if f := q.fed[fedFrom{level: level}]; f == nil || f.found {
			return
		}
	}
	q.own.backlog = false
}
