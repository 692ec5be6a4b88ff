package main

import (
	"fmt"
	"time"

	"github.com/sendquota/sendquota/internal/testenv"
)

// farAhead is a send time beyond the horizon, as most send times are.
func farAhead() string { return inUTC(48 * time.Hour) }

// inUTC returns the next full second after a delay, in the API's format.
func inUTC(d time.Duration) string {
	return time.Now().Add(d).UTC().Truncate(time.Second).Format(time.RFC3339)
}

// warmUp is the time that a system runs before its measurement: it opens connections, prepares statements and makes
// plans.
const warmUp = 2 * time.Second

// counted is a load in rounds, with the number of accepted pushes.
type counted struct {
	load
	pushes   int // per request
	accepted int
	cpu      usage
	measured int // pushes that the cpu was used for
	p50, p99 []time.Duration
}

// warm runs the load for a while without counting.
func (c *counted) warm(l *lab) {
	c.until = warmUp
	c.accepted += l.drive(c.load).accepted
}

// round runs the load for a while and returns its pushes per second.
func (c *counted) round(l *lab, d time.Duration) float64 {
	l.settle()
	c.until = d
	t := l.drive(c.load)
	l.report.disturbed(share(t.cpu[strangers], t.took))
	c.accepted += t.accepted
	c.measured += t.requests * c.pushes
	c.cpu = c.cpu.plus(t.cpu)
	c.p50, c.p99 = append(c.p50, testenv.Quantile(t.latencies, 0.5)), append(c.p99, testenv.Quantile(t.latencies, 0.99))
	return t.perSecond(c.pushes)
}

// latency returns the median of the rounds' request times.
func (c *counted) latency() string {
	return fmt.Sprintf("p50 %s, p99 %s", ms(testenv.Quantile(c.p50, 0.5)), ms(testenv.Quantile(c.p99, 0.5)))
}

// compare runs two loads by turns.
func (l *lab) compare(ours, theirs *counted) (all pairs) {
	ours.warm(l)
	theirs.warm(l)
	for n := range l.rounds {
		a, b := ours.round(l, l.round), theirs.round(l, l.round)
		testenv.Say("  round %d: %s/s against %s/s", n+1, count(a), count(b))
		all.add(a, b)
	}
	return all
}

// measureSubmit compares single submits for recipients that have nothing yet.
func measureSubmit(l *lab) {
	ours := l.newSendquota(nowhere)
	a, b := l.againstNaive("Submit: one push a request, 256 connections, distinct recipients", "submits/s", 2,
		&counted{load: ours.submit(farAhead()), pushes: 1})
	l.report.note("A submit took %s with sendquota and %s with the naive service.", a.latency(), b.latency())
	l.report.gathered("api", l.groups(ours.addr))
	ours.proveExact("submit", a.accepted)
}

// measureBatch compares batches with the naive service's single submits, which
// are all it has.
func measureBatch(l *lab) {
	ours := l.newSendquota(nowhere)
	a, _ := l.againstNaive("Batches of 1000, 4 connections", "pushes/s", 10, &counted{load: ours.batches(farAhead()), pushes: batchSize})
	l.report.note("A batch of 1000 took %s.", a.latency())
	ours.proveExact("batch", a.accepted)
}

// againstNaive compares a load with single submits to the naive service, and
// reports a row. wanted is the least ratio.
func (l *lab) againstNaive(row, unit string, wanted float64, ours *counted) (a, b *counted) {
	theirs := &counted{load: l.newNaive().submit(farAhead()), pushes: 1}
	l.report.compare(row, l.compare(ours, theirs), unit, wanted)
	l.report.used("sendquota", ours.measured, ours.cpu)
	l.report.used("naive", theirs.measured, theirs.cpu)
	return ours, theirs
}
