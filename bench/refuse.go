package main

import (
	"sync/atomic"

	"github.com/sendquota/sendquota/internal/testenv"
)

// measureRefusals compares refused submits with accepted ones. A refused submit repeats an accepted one just before,
// for the same recipient and minute. The recipients are warm: each was refused once before, which is not measured.
func measureRefusals(l *lab) {
	s := l.newSendquota(nowhere)
	sendAt := farAhead()
	accepted := &counted{load: s.submit(sendAt), pushes: 1}
	refused := &counted{load: s.submit(sendAt), pushes: 1}
	refused.expect = 409
	accepted.warm(l)
	var all pairs
	for n := range l.rounds {
		first := l.recipients.Load()
		yes := accepted.round(l, l.round*3/5)
		end := l.recipients.Load()
		warmUp := refused.load
		warmUp.next, warmUp.total = around(first, end), int(end-first)
		l.drive(warmUp)
		refused.next = around(first, end)
		no := refused.round(l, l.round*3/5)
		testenv.Say("  round %d: %s refusals/s against %s accepted/s", n+1, count(no), count(yes))
		all.add(no, yes)
	}
	l.report.compare("Refusals of warm recipients, against accepted submits", all, "submits/s", 2)
	l.report.used("sendquota", refused.measured, refused.cpu)
	l.report.note("A refusal took %s.", refused.latency())
	s.proveExact("refusals", accepted.accepted)
}

// around returns the numbers from first up to end, over and over.
func around(first, end int64) func() int64 {
	var n atomic.Int64
	return func() int64 { return first + (n.Add(1)-1)%(end-first) }
}
