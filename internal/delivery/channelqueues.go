package delivery

import (
	"context"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/channel"
	"github.com/sendquota/sendquota/internal/pace"
	"github.com/sendquota/sendquota/internal/push"
)

// pacer shares a channel's speed, and the pauses of its tenants, with other workers.
type pacer interface {
	Take(ctx context.Context, o pace.Order) pace.Slots
	Charge(ctx context.Context, channel string, s pace.Speed, n int)
	Pause(ctx context.Context, channel string, tenant uuid.UUID, d time.Duration)
	Forget(channel string, s pace.Speed)
	Run(ctx context.Context, channels []string, paused func(channel string, tenant uuid.UUID, left time.Duration)) error
}

// channelQueues are the queues of all channels.
type channelQueues struct {
	all    []*channelQueue // of the operator's channels, in their configured order
	byName map[string]*channelQueue
	own    *ownQueues // nil: tenants have no channels of their own
	pacer  pacer
	log    *slog.Logger
}

// newChannelQueues returns a queue for each channel of the operator, for a worker with allSlots slots.
func newChannelQueues(channels *channel.Set, p pacer, log *slog.Logger, allSlots int) *channelQueues {
	qs := &channelQueues{byName: map[string]*channelQueue{}, pacer: p, log: log}
	names := channels.Names()
	shared := newSlots(allSlots, len(names))
	for _, name := range names {
		e, _ := channels.Get(name)
		if e.Speed.Every > 0 && p == nil {
			panic("delivery: the speed of channel " + name + " is limited, and there is no pacer")
		}
		q := newChannelQueue(e, shared)
		qs.all = append(qs.all, q)
		qs.byName[name] = q
	}
	return qs
}

// get returns the queue of a route, or nil if there is none.
func (qs *channelQueues) get(route string) *channelQueue {
	if q := qs.byName[route]; q != nil {
		return q
	}
	return qs.own.get(route)
}

// names lists the channels whose pauses workers share.
func (qs *channelQueues) names() (all []string) {
	for _, q := range qs.all {
		all = append(all, q.channel)
	}
	if qs.own != nil {
		all = append(all, booking.OwnRoute)
	}
	return all
}

// open lists the channels that can take pushes at once, and how many, up to most. The number is at least one, to learn
// whether any push is due.
func (qs *channelQueues) open(most int) (channels []booking.DueChannel) {
	for _, q := range qs.all {
		if n, waits := q.open(); !waits {
			channels = append(channels, booking.DueChannel{Name: q.channel, Most: min(max(n, 1), most)})
		}
	}
	return channels
}

// reserve occupies a slot of each channel that can take a push at once, and lists the routes of the others. The caller counts
// the attempts, or frees the slots.
func (qs *channelQueues) reserve() (reserved, without []string) {
	for _, q := range qs.all {
		if q.tryOccupy() {
			reserved = append(reserved, q.channel)
		} else {
			without = append(without, q.channel)
		}
	}
	if qs.own != nil {
		without = append(without, booking.OwnRoute)
	}
	return reserved, without
}

// count counts attempts at a channel that begin or end.
func (qs *channelQueues) count(channel string, attempts int) {
	if q := qs.get(channel); q != nil { // otherwise the channel is no longer configured
		q.count(attempts, 0)
	}
}

// report updates the breakers by the result of an attempt. A result that concerns a single address does not count.
func (qs *channelQueues) report(ctx context.Context, route string, tenant uuid.UUID, r channel.Result) {
	q := qs.get(route)
	if q == nil {
		return
	}
	if r.Outcome == push.Refused && r.RetryAfter > 0 && !r.OneAddress {
		qs.pause(ctx, q, tenant, min(r.RetryAfter, longestHold))
		return
	}
	one, all := q.report(tenant, r.Down || r.Outcome == push.Unknown)
	if one[1].opened(one[0]) {
		qs.log.WarnContext(ctx, "provider is down for a tenant; its pushes wait", "channel", q.name(), "tenant", tenant, "for", untilNow(one[1].until), "error", r.Error)
	}
	switch {
	case all[1].opened(all[0]):
		qs.log.WarnContext(ctx, "provider is down; channel paused", "channel", q.name(), "for", untilNow(all[1].until), "error", r.Error)
	case all[1].closed && !all[0].closed:
		qs.log.InfoContext(ctx, "provider is up again; channel resumed", "channel", q.name())
	}
	if one[1].closed && !one[0].closed {
		qs.log.InfoContext(ctx, "provider is up again for a tenant", "channel", q.name(), "tenant", tenant)
	}
}

func untilNow(t time.Time) string { return time.Until(t).Round(time.Millisecond).String() }

// pause pauses a tenant at all workers, and the channel for as long as another tenant pauses, too.
func (qs *channelQueues) pause(ctx context.Context, q *channelQueue, tenant uuid.UUID, d time.Duration) {
	all := q.hold(tenant, d)
	if qs.pacer != nil {
		channel, of := q.channel, tenant
		if q.own != nil {
			channel, of = booking.OwnRoute, q.sharedPause()
		}
		qs.pacer.Pause(ctx, channel, of, d)
	}
	qs.log.WarnContext(ctx, "provider asked for a pause; the tenant's pushes wait", "channel", q.name(), "tenant", tenant, "for", d.String())
	if all > 0 {
		qs.log.WarnContext(ctx, "provider asked several tenants for a pause; channel paused", "channel", q.name(), "for", all.Round(time.Millisecond).String())
	}
}

// hold pauses a tenant because another worker was asked to.
func (qs *channelQueues) hold(channel string, tenant uuid.UUID, left time.Duration) {
	if channel == booking.OwnRoute {
		qs.own.hold(tenant, left)
		return
	}
	qs.byName[channel].hold(tenant, left)
}
