package main

import (
	"slices"
	"time"

	"github.com/sendquota/sendquota/internal/process"
	"github.com/sendquota/sendquota/internal/testenv"
)

// delivery is the speed of draining a backlog.
type delivery struct {
	perSecond float64
	cpu       usage
}

// measureDelivery delivers a backlog of due pushes: each worker starts when all of its wake-ups are in its queue. The
// clock runs from the start of the first attempt to the end of recording the last.
func measureDelivery(l *lab) {
	provider := l.startProvider()
	ours, theirs := l.newSendquota(provider.url()), l.newNaive()
	var againstNaive, againstNoop pairs
	used := map[string]usage{}
	for n := range l.rounds {
		a, b, c := l.deliverOurs(ours, provider), l.deliverNaive(theirs, provider), noop{l}.deliver()
		testenv.Say("  round %d: %s/s against the naive worker's %s/s and the no-op worker's %s/s", n+1, count(a.perSecond), count(b.perSecond), count(c.perSecond))
		againstNaive.add(a.perSecond, b.perSecond)
		againstNoop.add(a.perSecond, c.perSecond)
		for system, d := range map[string]delivery{"sendquota": a, "naive": b, "no-op": c} {
			used[system] = used[system].plus(d.cpu)
		}
	}
	l.report.compare("Deliver and record, against the naive worker", againstNaive, "pushes/s", 2.2)
	l.report.compare("Deliver and record, against the no-op worker", againstNoop, "pushes/s", 0.8)
	for _, system := range []string{"sendquota", "naive", "no-op"} {
		l.report.used(system, l.rounds*l.backlog, used[system])
	}
	l.report.gathered("worker", ours.gathered)
	ours.holds("deliver", "pushes WHERE status = 'sent'", l.rounds*l.backlog)
	ours.proveExact("deliver", l.rounds*l.backlog)
}

// deliverOurs books a backlog that is due at once, and starts a worker to deliver it.
func (l *lab) deliverOurs(s *sendquota, provider providerClient) delivery {
	l.settle()
	backlog := s.batches("")
	backlog.total = l.backlog / batchSize
	l.drive(backlog)
	return l.workOff(&s.service, provider, s.startWorker, s.stopWorker, `
		SELECT count(*) FILTER (WHERE s.ended_at IS NOT NULL), min(s.started_at), max(s.ended_at)
		FROM sends s WHERE s.started_at > $1`)
}

func (l *lab) deliverNaive(n *naive, provider providerClient) delivery {
	l.settle()
	backlog := n.submit("")
	backlog.total = l.backlog
	l.drive(backlog)
	start := func() *process.Process { return n.startWorker(provider.url()) }
	return l.workOff(&n.service, provider, start, l.stop, `
		SELECT count(*) FILTER (WHERE p.status = 'sent'), min(s.started_at), max(p.updated_at)
		FROM sends s JOIN pushes p ON p.id = s.push_id WHERE s.started_at > $1`)
}

// workOff starts a worker and waits until the whole backlog is recorded. The query recorded returns how many pushes
// were sent since a time, when the first attempt began and when the last was recorded.
func (l *lab) workOff(s *service, provider providerClient, start func() *process.Process, stop func(*process.Process), recorded string) delivery {
	l.checkpoint()
	before, began := l.cpu(), time.Now()
	worker := start()
	var first, last time.Time
	l.eventually(worker.Name+" has recorded the backlog", func() bool {
		var done int
		if provider.count() >= l.backlog {
			s.query(recorded, []any{began}, &done, &first, &last)
		}
		return done == l.backlog
	})
	d := delivery{perSecond: float64(l.backlog) / last.Sub(first).Seconds(), cpu: l.cpu().since(before)}
	l.report.disturbed(share(d.cpu[strangers], time.Since(began)))
	stop(worker)
	l.check(once(provider.take(), l.backlog))
	// Postgres must analyze the tables in the state after the delivery. Autovacuum does so at some time, most likely in
	// that state; the plans must not depend on when.
	s.exec("ANALYZE")
	return d
}

func (l noop) deliver() delivery {
	calls, cpu := l.drain(l.backlog, time.Now())
	byTime := func(a, b arrival) int { return a.at.Compare(b.at) }
	took := slices.MaxFunc(calls, byTime).at.Sub(slices.MinFunc(calls, byTime).at)
	return delivery{perSecond: float64(len(calls)) / took.Seconds(), cpu: cpu}
}
