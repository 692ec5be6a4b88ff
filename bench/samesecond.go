package main

import (
	"fmt"
	"time"

	"github.com/sendquota/sendquota/internal/testenv"
)

// lead is the time between booking a crowd of pushes and their second: longer than booking and arming take.
const lead = 12 * time.Second

// measureSameSecond makes many pushes of as many recipients due in one second, and measures when each arrives at the
// provider.
func measureSameSecond(l *lab) {
	provider := l.startProvider()
	s := l.newSendquota(provider.url())
	worker := s.startWorker()
	second := time.Now().Add(lead).UTC().Truncate(time.Second)
	crowd := s.batches(second.Format(time.RFC3339))
	crowd.total = l.backlog / batchSize
	l.drive(crowd)
	testenv.Say("  %d pushes are booked %s ahead", l.backlog, time.Until(second).Round(time.Millisecond))
	testenv.Sleep(l, time.Until(second))
	before := l.cpu()
	var recorded, early int
	var last time.Time
	l.eventually("all pushes of the second are recorded", func() bool {
		if provider.count() >= l.backlog {
			s.query(`SELECT count(*) FILTER (WHERE outcome = 'delivered'), count(*) FILTER (WHERE started_at < $1), max(ended_at) FROM sends`,
				[]any{second}, &recorded, &early, &last)
		}
		return recorded == l.backlog
	})
	l.report.used("sendquota", l.backlog, l.cpu().since(before))
	s.stopWorker(worker)
	l.report.gathered("worker", s.gathered)
	arrivals := provider.take()
	if err := once(arrivals, l.backlog); err != nil {
		l.report.fault("same second: %v", err)
	}
	late := after(second, arrivals)
	secondOfNoop := time.Now().Add(lead / 2).Truncate(time.Second)
	calls, _ := noop{l}.drain(l.backlog, secondOfNoop)
	if first := testenv.Quantile(late, 0); first < 0 || early > 0 {
		l.report.fault("same second: %d attempts began early, the first arrived %s before its time", early, -first)
	}
	name := fmt.Sprintf("%s pushes due at the same second", count(float64(l.backlog)))
	theirs := after(secondOfNoop, calls)
	ratio := float64(testenv.Quantile(late, 1)) / float64(testenv.Quantile(theirs, 1))
	l.report.add(row{
		measurement: l.report.measuring, Name: name, Ours: lateness(late), Theirs: lateness(theirs) + " (no-op worker)", Ratio: fmt.Sprintf("%.2f, of the last ones", ratio),
		Wanted: "≤ 1.4; all delivered and recorded, none early", OK: yes(ratio <= 1.4 && early == 0 && testenv.Quantile(late, 0) >= 0),
	})
	l.report.note("Same second: all %s were delivered once and recorded, the last %s after the second; none was early: the first arrived %s after it.",
		count(float64(len(late))), ms(last.Sub(second)), ms(testenv.Quantile(late, 0)))
	s.proveExact("same second", l.backlog)
}

func after(second time.Time, arrivals []arrival) (late []time.Duration) {
	for _, a := range arrivals {
		late = append(late, a.at.Sub(second))
	}
	return late
}

func lateness(late []time.Duration) string {
	return fmt.Sprintf("p50 %s, p99 %s, all after %s", ms(testenv.Quantile(late, 0.5)), ms(testenv.Quantile(late, 0.99)), ms(testenv.Quantile(late, 1)))
}
