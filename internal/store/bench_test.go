package store_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store"
)

// BenchmarkBook books single pushes from 256 callers at once.
func BenchmarkBook(b *testing.B) {
	st, tenant := open(b), uuid.New()
	var n atomic.Int64
	b.SetParallelism(128)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			d := draft(tenant, fmt.Sprintf("r%d", n.Add(1)), time.Hour)
			if v, err := st.Book(b.Context(), store.Order{Drafts: []store.Draft{d}, Policy: threeRules}); err != nil || v[0].Outcome != store.Booked {
				b.Fatal(err, v)
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "pushes/s")
}

// BenchmarkBookBatch books a thousand pushes at a time from four callers.
func BenchmarkBookBatch(b *testing.B) {
	st, tenant := open(b), uuid.New()
	var n atomic.Int64
	b.SetParallelism(2)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			drafts := make([]store.Draft, 1000)
			for i := range drafts {
				drafts[i] = draft(tenant, fmt.Sprintf("r%d", n.Add(1)), time.Hour)
			}
			if _, err := st.Book(b.Context(), store.Order{Drafts: drafts, Policy: threeRules}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.ReportMetric(1000*float64(b.N)/b.Elapsed().Seconds(), "pushes/s")
}

// BenchmarkClaimFinish claims and finishes due pushes from 256 callers at once.
func BenchmarkClaimFinish(b *testing.B) {
	st, tenant := open(b), uuid.New()
	for done := 0; done < b.N; {
		drafts := make([]store.Draft, min(1000, b.N-done))
		for i := range drafts {
			drafts[i] = draft(tenant, fmt.Sprintf("r%d", done+i+1), 0)
		}
		done += len(drafts)
		if _, err := st.Book(b.Context(), store.Order{Drafts: drafts, Policy: threeRules}); err != nil {
			b.Fatal(err)
		}
	}
	var n atomic.Int64
	b.SetParallelism(128)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			key := push.RecipientKey(tenant, fmt.Sprintf("r%d", n.Add(1)))
			c, err := st.Claim(b.Context(), store.ClaimOrder{RecipientKey: key, Policy: threeRules, Lease: time.Minute})
			if err != nil || c.Outcome != store.Claimed {
				b.Fatal(err, c)
			}
			if _, err := st.Finish(b.Context(), store.Finish{Push: c.Push.ID, Token: c.Token, Attempt: 1, Outcome: push.Delivered, Resolution: push.Resolution{Status: push.Sent}}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "pushes/s")
}
