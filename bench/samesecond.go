package main

import (
	"context"
	"fmt"
	"time"
)

// lead is how long before its second a crowd of pushes is booked: more than
// booking and arming it takes.
const lead = 12 * time.Second

// measureSameSecond has many pushes of as many recipients fall due in one
// second, and looks when each arrives at the provider.
func measureSameSecond(ctx context.Context, l *lab) error {
	provider, err := l.startProvider(ctx)
	if err != nil {
		return err
	}
	s, err := l.newSendquota(ctx, provider.url())
	if err != nil {
		return err
	}
	worker, err := s.startWorker()
	if err != nil {
		return err
	}
	second := time.Now().Add(lead).UTC().Truncate(time.Second)
	crowd := s.batches(second.Format(time.RFC3339))
	crowd.total = l.backlog / batchSize
	if _, err := l.drive(ctx, crowd); err != nil {
		return err
	}
	say("  %d pushes are booked %s ahead", l.backlog, time.Until(second).Round(time.Millisecond))
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(time.Until(second)):
	}
	before := l.cpu()
	var recorded, early int
	var last time.Time
	err = eventually(ctx, func() (bool, error) {
		arrived, err := provider.count(ctx)
		if err != nil || arrived < l.backlog {
			return false, err
		}
		err = s.query(ctx, `
			SELECT count(*) FILTER (WHERE outcome = 'delivered'), count(*) FILTER (WHERE started_at < $1), max(ended_at) FROM sends`,
			[]any{second}, &recorded, &early, &last)
		return recorded == l.backlog, err
	})
	if err != nil {
		l.report.fault("same second: %d of %d recorded: %v", recorded, l.backlog, err)
		return ctx.Err()
	}
	l.report.used("same second", "sendquota", l.backlog, l.cpu().since(before))
	if err := s.stopWorker(ctx, worker); err != nil {
		return err
	}
	l.report.gathered("worker", s.gathered)
	arrivals, err := provider.take(ctx)
	if err != nil {
		return err
	}
	if err := once(arrivals, l.backlog); err != nil {
		l.report.fault("same second: %v", err)
	}
	var late []time.Duration
	for _, a := range arrivals {
		late = append(late, a.at.Sub(second))
	}
	noop, err := l.sameSecondNoop(ctx)
	if err != nil {
		return err
	}
	if first := quantile(late, 0); first < 0 || early > 0 {
		l.report.fault("same second: %d attempts began early, the first arrived %s before its time", early, -first)
	}
	name := fmt.Sprintf("%s pushes due at the same second", count(float64(l.backlog)))
	l.report.add(row{
		measurement: l.report.measuring, name: name, ours: lateness(late), theirs: lateness(noop) + " (no-op worker)",
		wanted: "all delivered and recorded, none early", ok: yes(early == 0 && quantile(late, 0) >= 0),
	})
	l.report.note("Same second: all %s were delivered once and recorded, the last %s after the second; none was early: the first arrived %s after it.",
		count(float64(len(late))), ms(last.Sub(second)), ms(quantile(late, 0)))
	return l.proveExact(ctx, s, "same second", l.backlog)
}

func (l *lab) sameSecondNoop(ctx context.Context) ([]time.Duration, error) {
	second := time.Now().Add(lead / 2).Truncate(time.Second)
	times, _, err := l.drainNoop(ctx, l.backlog, second)
	var late []time.Duration
	for _, at := range times {
		late = append(late, at.Sub(second))
	}
	return late, err
}

func lateness(late []time.Duration) string {
	return fmt.Sprintf("p50 %s, p99 %s, all after %s", ms(quantile(late, 0.5)), ms(quantile(late, 0.99)), ms(quantile(late, 1)))
}
