package delivery

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/sendquota/sendquota/internal/channel"
	"github.com/sendquota/sendquota/internal/pace"
	"github.com/sendquota/sendquota/internal/push"
)

// pacer shares a channel's speed, and its pauses, with other workers.
type pacer interface {
	Take(ctx context.Context, channel string, s pace.Speed, wanted int) (slots int, wait time.Duration)
	Pause(ctx context.Context, channel string, d time.Duration)
	Run(ctx context.Context, channels []string, paused func(channel string, left time.Duration)) error
}

// lines are the lines of all channels, in their configured order.
type lines struct {
	all    []*line
	byName map[string]*line
	pacer  pacer
	log    *slog.Logger
}

// newLines makes a line for each channel of a worker with so many places.
func newLines(channels *channel.Set, p pacer, log *slog.Logger, all int) *lines {
	ls := &lines{byName: map[string]*line{}, pacer: p, log: log}
	names := channels.Names()
	shared := newPlaces(all, len(names))
	for _, name := range names {
		e, _ := channels.Get(name)
		if e.Speed.Every > 0 && p == nil {
			panic("delivery: the speed of channel " + name + " is limited, and there is no pacer")
		}
		l := newLine(e, shared)
		ls.all = append(ls.all, l)
		ls.byName[name] = l
	}
	return ls
}

// shut lists the channels at which pushes have to wait in line.
func (ls *lines) shut() (channels []string) {
	for _, l := range ls.all {
		if l.shut() {
			channels = append(channels, l.channel)
		}
	}
	return channels
}

// long lists the tenants of whose recipients so many wait in the line of a channel;
// 0: half as many as are sent in ten seconds, and a few thousand.
func (ls *lines) long(enough int) (sources []push.Source) {
	for _, l := range ls.all {
		for _, tenant := range l.many(cmp.Or(enough, max(l.limit/24, shortestLine/4))) {
			sources = append(sources, push.Source{Tenant: tenant, Channel: l.channel})
		}
	}
	return sources
}

// begin counts an attempt at a channel; the function that it returns counts it
// off.
func (ls *lines) begin(channel string) (end func()) {
	l := ls.byName[channel]
	if l == nil {
		return func() {} // it is not configured any more
	}
	l.count(1, 0)
	return func() { l.count(-1, 0) }
}

// judge takes note of what an attempt says about its provider.
func (ls *lines) judge(ctx context.Context, name string, r channel.Result) {
	l := ls.byName[name]
	if l == nil {
		return
	}
	if r.Outcome == push.Refused && r.RetryAfter > 0 {
		d := min(r.RetryAfter, longestHold)
		l.hold(d)
		if ls.pacer != nil {
			ls.pacer.Pause(ctx, name, d)
		}
		ls.log.WarnContext(ctx, "the provider asked for a pause; its channel waits", "channel", name, "for", d.String())
		return
	}
	opened, closed := l.judge(r.Down || r.Outcome == push.Unknown)
	switch {
	case opened:
		ls.log.WarnContext(ctx, "the provider fails; its channel is left alone for a while", "channel", name, "for", l.held().Round(time.Millisecond).String(), "error", r.Error)
	case closed:
		ls.log.InfoContext(ctx, "the provider works again", "channel", name)
	}
}

// names lists the channels.
func (ls *lines) names() (names []string) {
	for _, l := range ls.all {
		names = append(names, l.channel)
	}
	return names
}

// paused is told that another worker's provider asked for a pause.
func (ls *lines) paused(channel string, left time.Duration) { ls.byName[channel].hold(left) }
