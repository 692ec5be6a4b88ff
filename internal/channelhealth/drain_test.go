package channelhealth_test

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/sendquota/sendquota/internal/channelhealth"
	"github.com/sendquota/sendquota/internal/push"
)

// TestDrain_Oracle compares estimates with a queue that sends one push after another: the level that is furthest behind
// its share is next, and in it the tenant that waited longest.
func TestDrain_Oracle(t *testing.T) {
	t.Parallel()
	tenants := []uuid.UUID{uuid.New(), uuid.New(), uuid.New()}
	rapid.Check(t, func(t *rapid.T) {
		shares := push.Shares{}
		for i := range shares {
			shares[i] = rapid.IntRange(1, 100).Draw(t, "share")
		}
		var all []channelhealth.Backlog
		left := [len(push.Levels)][]int{}
		for i, l := range push.Levels {
			for j, tenant := range tenants {
				n := rapid.IntRange(0, 400).Draw(t, "waiting")
				all = append(all, channelhealth.Backlog{Tenant: tenant, Level: l, Waiting: n})
				left[i] = append(left[i], n)
				_ = j
			}
		}
		const every = 10 * time.Millisecond
		got := channelhealth.Drain(all, tenants[0], every, shares)
		want := [len(push.Levels)]time.Duration{}
		served, turn := [len(push.Levels)]float64{}, [len(push.Levels)]int{}
		for n := 1; ; n++ {
			next := -1
			for i := range left {
				if left[i][0]+left[i][1]+left[i][2] > 0 && (next < 0 || served[i]/float64(shares[i]) < served[next]/float64(shares[next])) {
					next = i
				}
			}
			if next < 0 {
				break
			}
			for left[next][turn[next]%3] == 0 {
				turn[next]++
			}
			who := turn[next] % 3
			left[next][who]--
			turn[next]++
			served[next]++
			if who == 0 {
				want[next] = time.Duration(n) * every
			}
		}
		for i := range got {
			// Whole pushes leave, and not parts of them: at most one of each level and tenant makes a difference, for as long as
			// the level with the least share needs for one.
			least := min(shares[0], shares[1], shares[2])
			slack := every * time.Duration(9+3*(shares[0]+shares[1]+shares[2])/least)
			if d := math.Abs(float64(got[i] - want[i])); d > float64(slack) && d > 0.1*float64(want[i]) {
				t.Errorf("level %s: %s, want %s", push.Levels[i], got[i], want[i])
			}
		}
	})
}

// TestDrain_Alone: alone in the channel, a level has the whole speed.
func TestDrain_Alone(t *testing.T) {
	t.Parallel()
	me := uuid.New()
	got := channelhealth.Drain([]channelhealth.Backlog{{Tenant: me, Level: push.Bulk, Waiting: 3000}}, me, 100*time.Millisecond, push.DefaultShares)
	if want := [...]time.Duration{0, 0, 300 * time.Second}; got != want {
		t.Errorf("%v, want %v", got, want)
	}
	got = channelhealth.Drain([]channelhealth.Backlog{{Tenant: me, Level: push.Bulk, Waiting: 3000}, {Tenant: me, Level: push.Urgent, Waiting: 70}}, me, 100*time.Millisecond, push.DefaultShares)
	if want := [...]time.Duration{8 * time.Second, 0, 307 * time.Second}; got != want { // 70 of 80 are urgent
		t.Errorf("%v, want %v", got, want)
	}
}

// TestSample_Measure: where the speed counts segments, a level takes the time of its texts' segments, in the mean of a sample. Messages that are
// no texts count once, as do levels without a sample.
func TestSample_Measure(t *testing.T) {
	t.Parallel()
	me := uuid.New()
	all := []channelhealth.Backlog{{Tenant: me, Level: push.Bulk, Waiting: 300}, {Tenant: me, Level: push.Normal, Waiting: 0}}
	var sample channelhealth.Sample
	sample[push.Bulk.Index()] = []json.RawMessage{[]byte(`"one"`), []byte(`"four"`), []byte(`"none"`)}
	sample.Measure(all, func(message json.RawMessage) int { return map[string]int{`"one"`: 1, `"four"`: 4}[string(message)] })
	got := channelhealth.Drain(all, me, 100*time.Millisecond, push.DefaultShares)
	if want := [...]time.Duration{0, 0, 60 * time.Second}; got != want {
		t.Errorf("%v, want %v", got, want)
	}
	all[0].Each, all[1].Waiting = 0, 10
	channelhealth.Sample{}.Measure(all, func(json.RawMessage) int { return 9 })
	if got := channelhealth.Drain(all[1:], me, 100*time.Millisecond, push.DefaultShares); got[1] != time.Second {
		t.Errorf("without a sample: %v", got)
	}
}
