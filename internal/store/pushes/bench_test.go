package pushes_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store/storetest"
	"github.com/sendquota/sendquota/internal/testenv"
)

// BenchmarkBook books single pushes from 256 callers at once.
func BenchmarkBook(b *testing.B) {
	s := setupNew(b)
	var n atomic.Int64
	b.SetParallelism(128)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			d := storetest.Draft(s.TenantID, fmt.Sprintf("r%d", n.Add(1)), time.Hour)
			if v, err := s.Book(b.Context(), booking.Order{Drafts: []booking.Draft{d}, Policy: storetest.ThreeRules}); err != nil || v[0].Outcome != booking.Booked {
				b.Fatal(err, v)
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "pushes/s")
}

// BenchmarkBookBatch books a thousand pushes at a time from four callers.
func BenchmarkBookBatch(b *testing.B) {
	s := setupNew(b)
	var n atomic.Int64
	b.SetParallelism(2)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			drafts := make([]booking.Draft, 1000)
			for i := range drafts {
				drafts[i] = storetest.Draft(s.TenantID, fmt.Sprintf("r%d", n.Add(1)), time.Hour)
			}
			if _, err := s.Book(b.Context(), booking.Order{Drafts: drafts, Policy: storetest.ThreeRules}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.ReportMetric(1000*float64(b.N)/b.Elapsed().Seconds(), "pushes/s")
}

// BenchmarkClaimFinish claims and finishes due pushes from 256 callers at once.
func BenchmarkClaimFinish(b *testing.B) {
	s := setupNew(b)
	for done := 0; done < b.N; {
		drafts := make([]booking.Draft, min(1000, b.N-done))
		for i := range drafts {
			drafts[i] = storetest.Draft(s.TenantID, fmt.Sprintf("r%d", done+i+1), 0)
		}
		done += len(drafts)
		if _, err := s.Book(b.Context(), booking.Order{Drafts: drafts, Policy: storetest.ThreeRules}); err != nil {
			b.Fatal(err)
		}
	}
	var n atomic.Int64
	b.SetParallelism(128)
	const logged = `SELECT (pg_current_wal_lsn() - '0/0')::bigint`
	before := storetest.Ask[int64](b, s.DB, logged)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			key := push.RecipientKey(s.TenantID, fmt.Sprintf("r%d", n.Add(1)))
			c, err := s.Claim(b.Context(), booking.ClaimOrder{RecipientKey: key, Policy: storetest.ThreeRules, Lease: time.Minute})
			if err != nil || c.Outcome != booking.Claimed {
				b.Fatal(err, c)
			}
			if _, err := s.Finish(b.Context(), booking.Finish{Attempt: c.Attempted(), Outcome: push.Delivered, Resolution: push.Resolution{Status: push.Sent}}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.ReportMetric(float64(storetest.Ask[int64](b, s.DB, logged)-before)/float64(b.N), "WAL-B/push")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "pushes/s")
}

// BenchmarkUpkeep runs the statements of a worker's loops for all lanes. Meanwhile 200,000 pushes are due and wait, as
// many become due within the horizon, and 10,000 are under way. BenchmarkAudit measures the audit.
func BenchmarkUpkeep(b *testing.B) {
	const pushes, horizon = 200_000, 3 * time.Hour
	s := setupAlone(b)
	s.Forge(b, pushes/20, "log", true, time.Minute)
	s.Exec(b, `UPDATE live SET phase = 6, rank = 2, next_at = send_at + interval '1 hour', started_at = send_at, attempts = 1, token = gen_random_uuid()`)
	for n := range time.Duration(40) { // as many moments
		s.Forge(b, pushes/40, "log", true, time.Minute+n*time.Second)
		s.Forge(b, pushes/40, "log", false, -2*time.Hour-n*time.Second)
	}
	s.Exec(b, `VACUUM ANALYZE pushes, live`)
	all := push.Lanes(1)
	counted := s.MustAhead(b, all[0], time.Time{}, horizon)
	for _, ask := range []struct {
		name string
		ask  func() error
	}{
		{"count what becomes due, for the first time", func() error { _, err := s.Ahead(b.Context(), []push.CountedLane{{Lane: all[0]}}, horizon); return err }},
		{"count what becomes due, every second", func() error {
			_, err := s.Ahead(b.Context(), []push.CountedLane{{Lane: all[0], Until: counted.Until}}, horizon)
			return err
		}},
		{"look for work", func() error { _, err := s.Agenda(b.Context(), all); return err }},
		{"look when what is due expires", func() error { _, _, err := s.NextExpiry(b.Context(), all, time.Time{}); return err }},
		{"look for what has expired", func() error { _, err := s.Expire(b.Context(), all, 500); return err }},
		{"look for lapsed leases", func() error { _, err := s.Lost(b.Context(), all, 500); return err }},
		{"look for the oldest", func() error { _, err := s.Overdue(b.Context()); return err }},
		{"count the backlog", func() error { _, _, err := s.Backlog(b.Context()); return err }},
	} {
		b.Run(ask.name, func(b *testing.B) {
			for b.Loop() {
				testenv.Check(b, ask.ask())
			}
		})
	}
}
