//go:build !race

// The race detector slows the program down, and not Redis.

package ratelimit

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/go-redis/redis_rate/v10"

	"github.com/sendquota/sendquota/internal/testenv"
)

// TestTake_LoneCaller: a lone caller has its decision in at most 1.3 times the time of redis_rate, which asks Redis
// without waiting for other callers. Calls of both alternate, so that a busy machine is slow for both. The best of
// several rounds counts.
func TestTake_LoneCaller(t *testing.T) {
	rdb := client(t, testenv.OwnRedis(t).URL)
	ours, theirs := New(rdb, strict(t)), redis_rate.NewLimiter(rdb)
	limits := classics()
	least := slices.Repeat([]float64{1000}, len(limits))
	for round := 0; round < 20 && slices.Max(least) > 1.3; round++ {
		took := make([][]time.Duration, len(limits)+1)
		for n := range 300 {
			subject := strconv.Itoa(n)
			for i, l := range limits {
				began := time.Now()
				if _, err := ours.Take(t.Context(), subject, 1, Rule{Subject: subject, Limit: l}); err != nil {
					t.Fatal(err)
				}
				took[i] = append(took[i], time.Since(began))
			}
			began := time.Now()
			if _, err := theirs.Allow(t.Context(), subject, redis_rate.PerMinute(10)); err != nil {
				t.Fatal(err)
			}
			took[len(limits)] = append(took[len(limits)], time.Since(began))
		}
		for i := range took {
			slices.Sort(took[i])
		}
		for i := range limits {
			least[i] = min(least[i], float64(took[i][150])/float64(took[len(limits)][150]))
		}
	}
	for i, ratio := range least {
		if ratio > 1.3 {
			t.Errorf("%s takes %.2f times as long", limits[i].Algorithm, ratio)
		}
	}
}
