package main

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/sendquota/sendquota/internal/testenv"
)

// The window of the backlog is two seconds instead of a minute, so that an
// outage of ten seconds stands for one of five minutes.
const (
	backlogWindow      = 2 * time.Second
	perRecipient       = 5
	recipientsPerBatch = 100
)

// backlog makes pushes due while no worker runs, several for each recipient, and then starts one. It must send the
// first push of each recipient at full speed, and the later ones a window apart, in order.
func backlog(t testenv.T, l *lab) {
	b := l.setup(t, config{
		name: "backlog", rules: []rule{{1, backlogWindow}},
		lease: 20 * time.Second, armLease: 20 * time.Second, ttl: 10 * time.Minute, apis: 1,
	})
	b.startAPI(0)
	began := time.Now()
	b.fallDue(l.backlog)
	testenv.Say("%d pushes were accepted in %s; the workers come back", l.backlog, time.Since(began).Round(100*time.Millisecond))
	back := time.Now()
	b.startWorker(nil)
	if left := b.settle(back.Add(time.Hour), 30*time.Second); left > 0 {
		l.report.violate("backlog: %d of %d pushes are left, and nothing goes on", left, l.backlog)
	}
	l.checkBacklog(b, back)
	l.report.record("backlog", b.check())
}

// fallDue books pushes a window apart, and returns when all of their times have passed. One in twenty has expired by
// then.
func (b *bundle) fallDue(pushes int) {
	first := time.Now().Add(time.Duration(2+pushes/2000) * time.Second).Truncate(time.Second)
	last := first.Add((perRecipient - 1) * backlogWindow)
	var g errgroup.Group
	g.SetLimit(8)
	recipients := pushes / perRecipient
	for n := 0; n < recipients; n += recipientsPerBatch {
		g.Go(func() error {
			b.newCaller().batchOfRecipients(b.Context(), n, min(n+recipientsPerBatch, recipients), first, last)
			return nil
		})
	}
	_ = g.Wait()
	testenv.Sleep(b, time.Until(last.Add(time.Second))) // a second longer: until the brief ones have expired
}

// batchOfRecipients books all pushes of a batch's recipients.
func (c *caller) batchOfRecipients(ctx context.Context, from, end int, first, last time.Time) {
	var (
		wanted []op
		bodies []object
	)
	for n := from; n < end; n++ {
		for i := range perRecipient {
			o := op{Recipient: fmt.Sprint("r", n), At: first.Add(time.Duration(i) * backlogWindow).UTC()}
			b := pushBody(o.Recipient, "", o.At)
			if n%20 == 0 && i == perRecipient-1 {
				o.Brief = true
				b["expires_at"] = last.Add(time.Second).UTC().Format(time.RFC3339)
			}
			wanted, bodies = append(wanted, o), append(bodies, b)
		}
	}
	c.submitBatch(ctx, fmt.Sprint("backlog-", from), false, wanted, bodies)
}

// checkBacklog compares the time of each send with the earliest time that its quota, and the order of its recipient's
// pushes, allowed.
func (l *lab) checkBacklog(b *bundle, back time.Time) {
	conn := testenv.Connect(b, b.Database)
	var (
		first, last, begin    time.Time
		sent, expired, firsts int
		disordered            int
		wait                  []float64
	)
	err := conn.QueryRow(b.Context(), `
		WITH s AS (
			SELECT p.recipient, p.send_at, s.started_at, coalesce(s.handed_at, s.ended_at) AS at,
				lag(coalesce(s.handed_at, s.ended_at)) OVER w AS before, lag(p.send_at) OVER w AS promised_before, row_number() OVER w AS n
			FROM sends s JOIN pushes p ON p.id = s.push_id WINDOW w AS (PARTITION BY p.recipient ORDER BY s.started_at)
		)
		SELECT min(started_at), max(started_at), count(*), count(*) FILTER (WHERE n = 1), coalesce(max(started_at) FILTER (WHERE n = 1), now()),
			count(*) FILTER (WHERE promised_before > send_at),
			array_agg(extract(epoch FROM started_at - greatest(send_at, before + $1::interval))::float8) FILTER (WHERE n > 1)
		FROM s`, backlogWindow).Scan(&first, &last, &sent, &firsts, &begin, &disordered, &wait)
	testenv.Check(b, err)
	testenv.Check(b, conn.QueryRow(b.Context(), `SELECT count(*) FROM pushes WHERE status = 'expired' AND last_error <> ''`).Scan(&expired))
	at := func(q float64) time.Duration {
		return time.Duration(testenv.Quantile(wait, q) * float64(time.Second)).Round(time.Millisecond)
	}
	needs := (perRecipient - 1) * backlogWindow
	took := last.Sub(back)
	l.report.sometimes("backlog: sent", sent)
	l.report.sometimes("backlog: expired, and said so", expired)
	l.report.measured("backlog: %d due pushes drained in %s, the quota alone needs %s; the first of each of %d recipients left at %.0f/s",
		l.backlog, took.Round(100*time.Millisecond), needs, firsts, float64(firsts)/begin.Sub(first).Seconds())
	l.report.measured("backlog: behind what its quota needs, a push left p50 %s, p99 %s, at most %s later", at(.5), at(.99), at(1))
	if disordered > 0 {
		l.report.violate("backlog: %d pushes overtook an older one of their recipient", disordered)
	}
	if sent+expired != l.backlog/perRecipient*perRecipient {
		l.report.violate("backlog: %d sent and %d expired of %d", sent, expired, l.backlog)
	}
	// At full speed the whole backlog passes as fast as its first wave did, or as
	// slowly as the quota demands; a wake-up that was lost comes after a lease.
	if most := time.Duration(perRecipient)*begin.Sub(back)*2 + needs + 20*time.Second; took > most {
		l.report.violate("backlog: it took %s to drain, at the pace of its beginning %s would do", took, most)
	}
}
