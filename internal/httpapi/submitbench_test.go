package httpapi

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/apikey"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/redisscript"
	"github.com/sendquota/sendquota/internal/schedule"
	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/internal/testenv"
)

// BenchmarkSubmits measures the cost of submits for this process: everything from the handler to Postgres and Redis, which are
// real, but without net/http. 64 callers ask at the same time.
func BenchmarkSubmits(b *testing.B) {
	st, err := store.Open(b.Context(), testenv.Postgres(b), store.Config{})
	testenv.Check(b, err)
	b.Cleanup(st.Close)
	cache := quota.NewCache(testenv.RedisClient(b, testenv.Redis(b)), redisscript.Config{})
	service := schedule.New(st, cache, noQueue{}, &submits{}, time.Now, schedule.Config{
		Policy: testPolicy(), Channels: []string{"push"}, DefaultTTL: 24 * time.Hour, MaxHorizon: 365 * 24 * time.Hour, Horizon: time.Minute,
	})
	h := New(service, st, Config{Log: slog.New(slog.NewJSONHandler(io.Discard, nil))})
	tenant, _, err := st.CreateTenant(b.Context(), "acme")
	testenv.Check(b, err)
	_, key, err := st.CreateKey(b.Context(), apikey.NewKey{Tenant: tenant, Scopes: push.Scopes})
	testenv.Check(b, err)
	slack := make([]byte, 64<<20) // the programs have it, too: a small heap would be collected all the time
	defer runtime.KeepAlive(slack)
	var recipients atomic.Int64
	post := func(b *testing.B, path, body string, want int) {
		r := httptest.NewRequest("POST", path, strings.NewReader(body))
		r.Header = http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer " + key}}
		w := &lastStatus{discard: discard{header: http.Header{}}}
		if h.ServeHTTP(w, r); w.status != want {
			b.Error(w.status)
		}
	}
	request := func(recipient int64) string {
		return fmt.Sprintf(`{"recipient":"r%d","send_at":"%s","message":{"title":"Sale","body":"Everything must go."}}`,
			recipient, time.Now().AddDate(0, 0, int(1+recipient%300)).UTC().Format(time.RFC3339))
	}
	run := func(pushes int, do func(b *testing.B)) func(b *testing.B) {
		return func(b *testing.B) {
			b.ReportAllocs()
			b.SetParallelism(max(1, 64/pushes/runtime.GOMAXPROCS(0)))
			before := processorTime()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					do(b)
				}
			})
			b.ReportMetric(float64((processorTime()-before).Nanoseconds())/1000/float64(pushes*b.N), "cpu-µs/push")
		}
	}
	b.Run("single", run(1, func(b *testing.B) { post(b, "/v1/pushes", request(recipients.Add(1)), 201) }))
	again := request(0)
	var refused atomic.Int64
	b.Run("refused", run(1, func(b *testing.B) { // recipients whose place for this time is taken, as their last push has found
		n := refused.Add(1)
		post(b, "/v1/pushes", strings.Replace(again, `"r0"`, fmt.Sprintf(`"refused-%d"`, n%1000), 1), map[bool]int{true: 201, false: 409}[n <= 1000])
	}))
	b.Run("batch of 1000", run(1000, func(b *testing.B) {
		members := make([]string, 1000)
		for i := range members {
			members[i] = request(recipients.Add(1))
		}
		post(b, "/v1/pushes/batch", `{"pushes":[`+strings.Join(members, ",")+`]}`, 200)
	}))
}

type lastStatus struct {
	discard
	status int
}

func (w *lastStatus) WriteHeader(status int) { w.status = status }

// processorTime returns the processor time that this process has used.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
