package ratelimit

import (
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/redisclient"
	"github.com/sendquota/sendquota/internal/testenv"
)

// BenchmarkTake is the speed of many callers that each ask about one of many subjects, and what a decision costs Redis
// itself. The comparison with others is in bench.
func BenchmarkTake(b *testing.B) {
	for _, limit := range classics() {
		b.Run(string(limit.Algorithm), func(b *testing.B) {
			l, rdb := setupReal(b)
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
			_, micros := usage(b, rdb)
			b.ReportMetric(micros, "µs-in-Redis/op")
		})
	}
}

// BenchmarkCallers measures one request's cost for Redis with limits of an API key and an address, all in one slot of a
// cluster.
func BenchmarkCallers(b *testing.B) {
	rdb := client(b, testenv.OwnRedis(b).URL)
	l := New(rdb, strict(b))
	var n atomic.Int64
	rdb.ConfigResetStat(b.Context())
	b.SetParallelism(128)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			i := n.Add(1)
			_, err := l.Take(b.Context(), "callers", 1,
				Rule{Subject: fmt.Sprint("per-ip ", i%1000), Limit: Limit{Algorithm: TokenBucket, Limit: 200, Per: time.Second, Burst: 400}},
				Rule{Subject: fmt.Sprint("per-key ", i%100), Limit: Limit{Algorithm: SlidingWindow, Limit: 600_000, Per: time.Minute}})
			if err != nil {
				b.Error(err)
			}
		}
	})
	_, micros := usage(b, rdb)
	b.ReportMetric(micros, "µs-in-Redis/op")
}

// usage returns the number of EVALSHAs, and their mean time in Redis.
func usage(t testing.TB, rdb redisclient.Client) (calls int, micros float64) {
	t.Helper()
	for line := range strings.Lines(rdb.Info(t.Context(), "commandstats").Val()) {
		if n, _ := fmt.Sscanf(strings.ReplaceAll(line, ",", " "), "cmdstat_evalsha:calls=%d usec=%d usec_per_call=%g", &calls, new(int), &micros); n == 3 {
			return calls, micros
		}
	}
	t.Fatal("no EVALSHA")
	return 0, 0
}

// BenchmarkMemory measures the memory of a subject in Redis that has used all of its limit, evenly spread over the
// time.
func BenchmarkMemory(b *testing.B) {
	for _, most := range []int{10, 100, 1000} {
		for _, limit := range classics() {
			b.Run(fmt.Sprintf("%s-%d", limit.Algorithm, most), func(b *testing.B) {
				p := setup(b)
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
				key := "sq:" + slotOf("story") + keyOf(Rule{Subject: "anna", Limit: limit.WithDefaults()})
				b.ReportMetric(float64(p.rdb.MemoryUsage(b.Context(), key).Val()), "B/subject")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}
