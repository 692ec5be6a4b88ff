package main

import (
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/testenv"
)

// measureLateness makes a thousand pushes due in each of many seconds, and measures how long after its second each
// arrives at the provider.
func measureLateness(l *lab) {
	seconds := l.backlog * 3 / 2 / batchSize
	provider := l.startProvider()
	s := l.newSendquota(provider.url())
	worker := s.startWorker()
	first := time.Now().Add(lead).UTC().Truncate(time.Second)
	for n := range seconds {
		batch := s.batches(first.Add(time.Duration(n) * time.Second).Format(time.RFC3339))
		batch.total, batch.conns = 1, 1
		l.drive(batch)
	}
	testenv.Say("  %d pushes are booked, from %s ahead on", seconds*batchSize, time.Until(first).Round(time.Millisecond))
	testenv.Sleep(l, time.Until(first))
	before := l.cpu()
	testenv.Sleep(l, time.Duration(seconds)*time.Second)
	l.report.used("sendquota", seconds*batchSize, l.cpu().since(before))
	l.eventually("all pushes have arrived", func() bool { return provider.count() >= seconds*batchSize })
	s.stopWorker(worker)
	l.report.gathered("worker", s.gathered)
	arrivals := provider.take()
	if err := once(arrivals, seconds*batchSize); err != nil {
		l.report.fault("lateness: %v", err)
	}
	late := s.late(arrivals)
	p99 := testenv.Quantile(late, 0.99)
	l.report.add(row{
		measurement: l.report.measuring, Name: fmt.Sprintf("lateness at 1,000 a second, for %d s", seconds), Ours: lateness(late), Theirs: "—",
		Wanted: "p99 ≤ 100 ms", OK: yes(p99 <= 100*time.Millisecond),
	})
	s.proveExact("lateness", seconds*batchSize)
}

// late returns the lateness of each push after its promised time.
func (s *sendquota) late(arrivals []arrival) (late []time.Duration) {
	promised := map[string]time.Time{}
	rows, err := s.db.Query(s.l.Context(), `SELECT id::text, send_at FROM pushes`)
	s.l.check(err)
	var (
		id string
		at time.Time
	)
	_, err = pgx.ForEachRow(rows, []any{&id, &at}, func() error {
		promised[id] = at
		return nil
	})
	s.l.check(err)
	for _, a := range arrivals {
		late = append(late, a.at.Sub(promised[a.push]))
	}
	return late
}
