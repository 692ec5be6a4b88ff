package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sendquota/sendquota/internal/process"
)

// delivery is how fast a backlog was worked off.
type delivery struct {
	perSecond float64
	cpu       usage
}

// measureDelivery has a backlog of due pushes delivered: each worker starts
// when all of its wake-ups are in its queue. The clock runs from the start of
// the first attempt to the end of recording the last.
func measureDelivery(ctx context.Context, l *lab) error {
	provider, err := l.startProvider(ctx)
	if err != nil {
		return err
	}
	ours, err := l.newSendquota(ctx, provider.url())
	if err != nil {
		return err
	}
	theirs, err := l.newNaive(ctx)
	if err != nil {
		return err
	}
	var againstNaive, againstNoop pairs
	used := map[string]usage{}
	for n := range l.rounds {
		a, err := l.deliverOurs(ctx, ours, provider)
		if err != nil {
			return err
		}
		b, err := l.deliverNaive(ctx, theirs, provider)
		if err != nil {
			return err
		}
		c, err := l.deliverNoop(ctx)
		if err != nil {
			return err
		}
		say("  round %d: %s/s against the naive worker's %s/s and the no-op worker's %s/s", n+1, count(a.perSecond), count(b.perSecond), count(c.perSecond))
		againstNaive = append(againstNaive, pair{a.perSecond, b.perSecond})
		againstNoop = append(againstNoop, pair{a.perSecond, c.perSecond})
		for system, d := range map[string]delivery{"sendquota": a, "naive": b, "no-op": c} {
			used[system] = used[system].plus(d.cpu)
		}
	}
	l.report.compare("Deliver and record, against the naive worker", againstNaive, "pushes/s", 1.3)
	l.report.compare("Deliver and record, against the no-op worker", againstNoop, "pushes/s", 0.4)
	for _, system := range []string{"sendquota", "naive", "no-op"} {
		l.report.used("deliver", system, l.rounds*l.backlog, used[system])
	}
	l.report.gathered("worker", ours.gathered)
	if err := ours.holds(ctx, "pushes WHERE status = 'sent'", l.rounds*l.backlog); err != nil {
		l.report.fault("deliver: %v", err)
	}
	return l.proveExact(ctx, ours, "deliver", l.rounds*l.backlog)
}

// deliverOurs books a backlog that is due at once and lets a worker at it.
func (l *lab) deliverOurs(ctx context.Context, s *sendquota, provider providerClient) (delivery, error) {
	if err := l.settle(ctx); err != nil {
		return delivery{}, err
	}
	backlog := s.batches("")
	backlog.total = l.backlog / batchSize
	if _, err := l.drive(ctx, backlog); err != nil {
		return delivery{}, err
	}
	stop := func(p *process.Process) error { return s.stopWorker(ctx, p) }
	return l.workOff(ctx, &s.service, provider, s.startWorker, stop, `
		SELECT count(*) FILTER (WHERE s.ended_at IS NOT NULL), min(s.started_at), max(s.ended_at)
		FROM sends s WHERE s.started_at > $1`)
}

func (l *lab) deliverNaive(ctx context.Context, n *naive, provider providerClient) (delivery, error) {
	if err := l.settle(ctx); err != nil {
		return delivery{}, err
	}
	backlog := n.submit(l, "")
	backlog.total = l.backlog
	if _, err := l.drive(ctx, backlog); err != nil {
		return delivery{}, err
	}
	start := func() (*process.Process, error) { return n.startWorker(l, provider.url()) }
	return l.workOff(ctx, &n.service, provider, start, l.stop, `
		SELECT count(*) FILTER (WHERE p.status = 'sent'), min(s.started_at), max(p.updated_at)
		FROM sends s JOIN pushes p ON p.id = s.push_id WHERE s.started_at > $1`)
}

// workOff starts a worker, waits until the whole backlog is recorded, and asks
// recorded how many there are since a time, when the first began and when the
// last was recorded.
func (l *lab) workOff(ctx context.Context, s *service, provider providerClient, start func() (*process.Process, error), stop func(*process.Process) error, recorded string) (delivery, error) {
	if err := l.servers.checkpoint(ctx); err != nil {
		return delivery{}, err
	}
	before, began := l.cpu(), time.Now()
	worker, err := start()
	if err != nil {
		return delivery{}, err
	}
	var first, last time.Time
	err = eventually(ctx, func() (bool, error) {
		arrived, err := provider.count(ctx)
		if err != nil || arrived < l.backlog {
			return false, err
		}
		var done int
		err = s.query(ctx, recorded, []any{began}, &done, &first, &last)
		return done == l.backlog, err
	})
	if err != nil {
		return delivery{}, fmt.Errorf("%s: %w\n%s", worker.Name, err, worker.LogTail())
	}
	d := delivery{perSecond: float64(l.backlog) / last.Sub(first).Seconds(), cpu: l.cpu().since(before)}
	l.report.disturbed(share(d.cpu[strangers], time.Since(began)))
	if err := stop(worker); err != nil {
		return d, err
	}
	arrivals, err := provider.take(ctx)
	if err != nil {
		return d, err
	}
	return d, errors.Join(once(arrivals, l.backlog), s.analyze(ctx))
}

func (l *lab) deliverNoop(ctx context.Context) (delivery, error) {
	times, cpu, err := l.drainNoop(ctx, l.backlog, time.Now())
	if err != nil {
		return delivery{}, err
	}
	took := slices.MaxFunc(times, time.Time.Compare).Sub(slices.MinFunc(times, time.Time.Compare))
	return delivery{perSecond: float64(len(times)) / took.Seconds(), cpu: cpu}, nil
}
