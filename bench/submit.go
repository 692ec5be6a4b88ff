package main

import (
	"context"
	"fmt"
	"time"
)

// farAhead is a send time beyond the horizon, as most send times are.
func farAhead() string {
	return time.Now().Add(48 * time.Hour).UTC().Truncate(time.Second).Format(time.RFC3339)
}

// warmUp is how long a system runs before it is measured: connections are
// opened, statements prepared, plans made.
const warmUp = 2 * time.Second

// counted is a load in rounds, and all that it was granted.
type counted struct {
	load
	pushes   int // per request
	accepted int
	cpu      usage
	measured int // pushes that the cpu was used for
	p50, p99 []time.Duration
}

// warm runs the load for a while that does not count.
func (c *counted) warm(ctx context.Context, l *lab) error {
	c.until = warmUp
	t, err := l.drive(ctx, c.load)
	c.accepted += t.accepted
	return err
}

// round runs the load for a while and returns its pushes per second.
func (c *counted) round(ctx context.Context, l *lab, d time.Duration) (float64, error) {
	if err := l.settle(ctx); err != nil {
		return 0, err
	}
	c.until = d
	t, err := l.drive(ctx, c.load)
	if err != nil {
		return 0, err
	}
	l.report.disturbed(share(t.cpu[strangers], t.took))
	c.accepted += t.accepted
	c.measured += t.requests * c.pushes
	c.cpu = c.cpu.plus(t.cpu)
	c.p50, c.p99 = append(c.p50, quantile(t.latencies, 0.5)), append(c.p99, quantile(t.latencies, 0.99))
	return t.perSecond(c.pushes), nil
}

// latency says how long a request took, in the median of the rounds.
func (c *counted) latency() string {
	return fmt.Sprintf("p50 %s, p99 %s", ms(quantile(c.p50, 0.5)), ms(quantile(c.p99, 0.5)))
}

// compare lets two loads take turns.
func (l *lab) compare(ctx context.Context, ours, theirs *counted) (pairs, error) {
	for _, c := range []*counted{ours, theirs} {
		if err := c.warm(ctx, l); err != nil {
			return nil, err
		}
	}
	var all pairs
	for n := range l.rounds {
		var p pair
		var err error
		if p.ours, err = ours.round(ctx, l, l.round); err != nil {
			return nil, err
		}
		if p.theirs, err = theirs.round(ctx, l, l.round); err != nil {
			return nil, err
		}
		say("  round %d: %s/s against %s/s", n+1, count(p.ours), count(p.theirs))
		all = append(all, p)
	}
	return all, nil
}

// measureSubmit compares single submits for recipients that have nothing yet.
func measureSubmit(ctx context.Context, l *lab) error {
	ours, err := l.newSendquota(ctx, "http://127.0.0.1:9/")
	if err != nil {
		return err
	}
	theirs, err := l.newNaive(ctx)
	if err != nil {
		return err
	}
	a := &counted{load: ours.submit(l, farAhead()), pushes: 1}
	b := &counted{load: theirs.submit(l, farAhead()), pushes: 1}
	rounds, err := l.compare(ctx, a, b)
	if err != nil {
		return err
	}
	l.report.compare("Submit: one push a request, 256 connections, distinct recipients", rounds, "submits/s", 1.5)
	l.report.used("submit", "sendquota", a.measured, a.cpu)
	l.report.used("submit", "naive", b.measured, b.cpu)
	l.report.note("A submit took %s with sendquota and %s with the naive service.", a.latency(), b.latency())
	gathered, err := groups(ctx, ours.addr)
	if err != nil {
		return err
	}
	l.report.gathered("api", gathered)
	return l.proveExact(ctx, ours, "submit", a.accepted)
}

// proveExact holds what was answered against what was stored, and has the
// audit look for broken guarantees.
func (l *lab) proveExact(ctx context.Context, s *sendquota, what string, accepted int) error {
	err := s.holds(ctx, "pushes", accepted)
	if err == nil {
		err = s.audit(ctx)
	}
	if err != nil {
		l.report.fault("%s: %v", what, err)
		return ctx.Err()
	}
	l.report.note("Exact (%s): %s pushes were answered with 201 and as many rows are in Postgres; `sendquota audit` finds no violations.", what, count(float64(accepted)))
	return nil
}

// measureBatch compares batches with the naive service's single submits, which
// are all it has.
func measureBatch(ctx context.Context, l *lab) error {
	ours, err := l.newSendquota(ctx, "http://127.0.0.1:9/")
	if err != nil {
		return err
	}
	theirs, err := l.newNaive(ctx)
	if err != nil {
		return err
	}
	a := &counted{load: ours.batches(farAhead()), pushes: batchSize}
	b := &counted{load: theirs.submit(l, farAhead()), pushes: 1}
	rounds, err := l.compare(ctx, a, b)
	if err != nil {
		return err
	}
	l.report.compare("Batches of 1000, 4 connections", rounds, "pushes/s", 8)
	l.report.used("batch", "sendquota", a.measured, a.cpu)
	l.report.used("batch", "naive", b.measured, b.cpu)
	l.report.note("A batch of 1000 took %s.", a.latency())
	return l.proveExact(ctx, ours, "batch", a.accepted)
}
