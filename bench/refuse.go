package main

import (
	"context"
	"sync/atomic"
)

// measureRefusals compares refused submits with accepted ones. The recipients
// of the refused ones are those of the accepted ones just before, and ask for
// the same minute again.
func measureRefusals(ctx context.Context, l *lab) error {
	s, err := l.newSendquota(ctx, "http://127.0.0.1:9/")
	if err != nil {
		return err
	}
	sendAt := farAhead()
	accepted := &counted{load: s.submit(l, sendAt), pushes: 1}
	refused := &counted{load: s.submit(l, sendAt), pushes: 1}
	refused.expect = 409
	if err := accepted.warm(ctx, l); err != nil {
		return err
	}
	var all pairs
	for n := range l.rounds {
		first := l.recipients.Load()
		yes, err := accepted.round(ctx, l, l.round*3/5)
		if err != nil {
			return err
		}
		refused.next = around(first, l.recipients.Load())
		no, err := refused.round(ctx, l, l.round*3/5)
		if err != nil {
			return err
		}
		say("  round %d: %s refusals/s against %s accepted/s", n+1, count(no), count(yes))
		all = append(all, pair{ours: no, theirs: yes})
	}
	l.report.compare("Refusals of warm recipients, against accepted submits", all, "submits/s", 2)
	l.report.used("refuse", "sendquota", refused.measured, refused.cpu)
	l.report.note("A refusal took %s.", refused.latency())
	return l.proveExact(ctx, s, "refusals", accepted.accepted)
}

// around returns the numbers from first up to end, over and over.
func around(first, end int64) func() int64 {
	var n atomic.Int64
	return func() int64 { return first + (n.Add(1)-1)%(end-first) }
}
