package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/process"
	"github.com/sendquota/sendquota/internal/testenv"
)

// levelsConfig has a slow channel, and categories of two service levels.
const levelsConfig = `
policy:
  rules: []
  categories: {code: {level: urgent}, news: {level: bulk}}
channels:
  sms: {type: webhook, url: "http://PROVIDER/send", secret: "${PUSH_SECRET}", allow_private_addresses: true, timeout: 30s, backoff: {first: 100ms, max: 1s}, throughput: {rate: 20}}
delivery: {lease: 2m, arm_lease: 2s, redis_patience: 1s}
`

// TestLevels_Faults: codes leave before the hundreds of news that have been due for longer, although a worker is killed,
// and Redis is flushed and stands still. Each leaves once.
func TestLevels_Faults(t *testing.T) {
	t.Parallel()
	redis := newOwnRedis(t)
	b := setupWith(t, options{redis: redis.URL, config: levelsConfig})
	b.StartAPI()
	workers := []*process.Process{b.Start("worker"), b.Start("worker"), b.Start("worker")}
	const news, codes, aSecond = 600, 60, 4
	first := time.Now().Add(4 * time.Second).UTC().Truncate(time.Second)
	due := map[string]time.Time{} // of the codes, by message
	var pushes []object
	for i := range news {
		pushes = append(pushes, object{"recipient": fmt.Sprint("n", i), "category": "news", "send_at": first.Format(time.RFC3339), "message": object{"n": i}})
	}
	for i := range codes {
		at := first.Add(time.Duration(1+i/aSecond) * time.Second)
		due[fmt.Sprintf(`{"code":%d}`, i)] = at
		pushes = append(pushes, object{"recipient": fmt.Sprint("c", i), "category": "code", "send_at": at.Format(time.RFC3339), "message": object{"code": i}})
	}
	if status, a := b.call(http.MethodPost, "/v1/pushes/batch", object{"pushes": pushes}); status != http.StatusOK || a["accepted"] != float64(news+codes) {
		t.Fatalf("%d %v", status, a)
	}
	came := func() (n int) {
		for _, one := range b.provider.Arrivals() {
			if _, code := due[string(one.Message)]; code {
				n++
			}
		}
		return n
	}
	b.until("a quarter of the codes has left", func() bool { return came() >= codes/4 })
	testenv.Check(t, workers[0].Kill())
	b.until("half of the codes has left", func() bool { return came() >= codes/2 })
	redis.do("FLUSHALL")
	b.until("two thirds of the codes have left", func() bool { return came() >= 2*codes/3 })
	redis.must(redis.Pause())
	time.Sleep(3 * time.Second) // longer than the workers' patience
	redis.must(redis.Resume())
	b.until("all codes have left", func() bool { return came() >= codes })

	arrivals := b.provider.Arrivals()
	slices.SortFunc(arrivals, func(a, b testenv.Arrival) int { return a.At.Compare(b.At) })
	times, between := map[string]int{}, []int{}
	for i, one := range arrivals {
		at, code := due[string(one.Message)]
		if !code {
			continue
		}
		if times[string(one.Message)]++; times[string(one.Message)] > 1 {
			continue
		}
		n := 0
		for _, before := range arrivals[:i] {
			if _, other := due[string(before.Message)]; !other && before.At.After(at) {
				n++
			}
		}
		between = append(between, n)
	}
	slices.Sort(between)
	// In the order of their send times, hundreds of news would leave between a code's time and the code.
	if median, most := between[len(between)/2], between[len(between)-1]; median > 20 || most > 150 {
		t.Errorf("news that left while a code waited: %v", between)
	}
	twice := 0
	for _, n := range times {
		twice += n - 1
	}
	if len(times) != codes || twice > 1 { // what the killed worker was sending
		t.Errorf("%d codes left, %d of them twice", len(times), twice)
	}
	b.wantAudited()
}
