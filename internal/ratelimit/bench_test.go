package ratelimit

import (
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// BenchmarkTake is the speed of many callers that each ask about one of many
// subjects, and what a decision costs Redis itself. The comparison with others
// is in bench.
func BenchmarkTake(b *testing.B) {
	for _, limit := range classics() {
		b.Run(string(limit.Algorithm), func(b *testing.B) {
			l, rdb := newRealLimiter(b)
			limit.Limit, limit.Per = 100, time.Second
			if limit.Algorithm.bucket() {
				limit.Burst = 100
			}
			rdb.ConfigResetStat(b.Context())
			var n atomic.Int64
			b.SetParallelism(128)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					subject := strconv.FormatInt(n.Add(1)%1000, 10)
					if _, err := l.Take(b.Context(), subject, 1, Rule{Subject: subject, Limit: limit}); err != nil {
						b.Error(err)
					}
				}
			})
			for line := range strings.Lines(rdb.Info(b.Context(), "commandstats").Val()) {
				if rest, ok := strings.CutPrefix(line, "cmdstat_evalsha:"); ok {
					_, rest, _ = strings.Cut(rest, "usec_per_call=")
					rest, _, _ = strings.Cut(rest, ",")
					micros, _ := strconv.ParseFloat(rest, 64)
					b.ReportMetric(micros, "µs-in-Redis/op")
				}
			}
		})
	}
}

// BenchmarkMemory is what a subject takes in Redis that has used all of its
// limit, evenly spread over the time.
func BenchmarkMemory(b *testing.B) {
	for _, most := range []int{10, 100, 1000} {
		for _, limit := range classics() {
			b.Run(fmt.Sprintf("%s-%d", limit.Algorithm, most), func(b *testing.B) {
				p := newPuppet(b)
				limit.Limit, limit.Per = most, time.Hour
				if limit.Algorithm.bucket() {
					limit.Burst = most
				}
				for n := range most {
					p.at(b, minute/3_600_000_000*3_600_000_000+int64(n)*3_599_000_123/int64(most))
					if !p.take(b, "anna", limit, 1).Allowed {
						b.Fatal("refused")
					}
				}
				key := slotOf("story") + keyOf(Rule{Subject: "anna", Limit: limit.WithDefaults()})
				b.ReportMetric(float64(p.rdb.MemoryUsage(b.Context(), key).Val()), "B/subject")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}
