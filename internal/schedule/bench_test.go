package schedule_test

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/schedule"
)

// BenchmarkSubmitUnderCaps submits pushes of one tenant from 64 concurrent callers, through one service and through
// two, without caps and under caps that leave room.
func BenchmarkSubmitUnderCaps(b *testing.B) {
	for _, services := range []int{1, 2} {
		for _, capped := range []bool{false, true} {
			b.Run(fmt.Sprintf("services=%d/capped=%t", services, capped), func(b *testing.B) {
				s := ownServers(b)
				first := s.open(b, threeRules)
				all := []*schedule.Service{first.serviceAt(threeRules, time.Now), s.open(b, threeRules).serviceAt(threeRules, time.Now)}
				limit := 0 // unlimited
				if capped {
					limit = 2 * b.N
				}
				caps := push.OwnCaps{PendingPushes: &limit, RecipientsPerDay: &limit}
				var n atomic.Int64
				b.SetParallelism(max(1, 64/runtime.GOMAXPROCS(0)))
				b.ResetTimer()
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						i := int(n.Add(1))
						_, err := all[i%services].Submit(b.Context(), first.tenant, to(fmt.Sprintf("r%d", i), tomorrow), schedule.Options{Caps: caps})
						if err != nil {
							b.Error(err)
							return
						}
					}
				})
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "submits/s")
			})
		}
	}
}
