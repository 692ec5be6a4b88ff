package pace_test

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/pace"
	"github.com/sendquota/sendquota/internal/testenv"
)

// segmented is the speed of 50 segments a second.
var segmented = pace.Speed{Every: 20 * time.Millisecond, Burst: 1, Most: 10}

// text is a text that was sent, in a slot between two times.
type text struct {
	from, to time.Time
	segments int
}

// sendTexts sends texts of several segments each: it takes a slot, and charges the others when the text is known.
func sendTexts(t *testing.T, p *pace.Pacer, segments []int, each int) (sent []text) {
	for _, n := range segments {
		for taken := 0; taken == 0; {
			before := time.Now()
			s := p.Take(t.Context(), pace.Order{Channel: "sms", Speed: segmented, Wanted: 1, Each: each})
			if taken = s.Taken; taken > 0 {
				sent = append(sent, text{before.Add(s.Wait), time.Now().Add(s.Wait), n})
			}
			time.Sleep(s.Wait)
		}
		if n > max(each, 1) {
			p.Charge(t.Context(), "sms", segmented, n-max(each, 1))
		}
	}
	return sent
}

// withinSpeed wants no stretch of time to have more segments than the channel's speed allows, except for slack and those of
// the last text. A text counts where its slot is certainly within the stretch; on a busy machine it is not known which of several slots
// was the last.
func withinSpeed(t *testing.T, sent []text, slack int) {
	t.Helper()
	slices.SortFunc(sent, func(a, b text) int { return a.to.Compare(b.to) })
	for _, first := range sent {
		var within []text
		sum, begun := 0, first.from // begun is when the last one began at the earliest
		for _, one := range sent {
			if one.from.Before(first.from) {
				continue
			}
			within, sum = append(within, one), sum+one.segments
			if one.from.After(begun) {
				begun = one.from
			}
			last := 0
			for _, w := range within {
				if !w.to.Before(begun) {
					last = max(last, w.segments)
				}
			}
			if took := one.to.Sub(first.from); took+time.Millisecond < time.Duration(sum-last-slack)*segmented.Every {
				t.Fatalf("%d segments of %d texts were sent within %s", sum-last, len(within)-1, took)
			}
		}
	}
}

// TestCharge_OneWorker: a text takes as many slots as it has segments, whether they were known before or not.
func TestCharge_OneWorker(t *testing.T) {
	t.Parallel()
	for _, each := range []int{1, 2} {
		rdb := client(t, testenv.Redis(t))
		ready(t, rdb, segmented)
		sent := sendTexts(t, worker(t, rdb, "a"), []int{3, 1, 5, 2, 2, 4, 1, 3}, each)
		withinSpeed(t, sent, 0)
	}
}

// TestCharge_TwoWorkers: the segments of all workers together keep to the speed. While the segments of a text are not known
// yet, the other worker may have taken the slot behind it: by those segments, they are too fast once.
func TestCharge_TwoWorkers(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		segments func() int
		each     int
		slack    int
	}{
		"known before": {func() int { return 3 }, 3, 0},
		"known later":  {func() int { return 3 }, 1, 2},
		"of any size":  {func() int { return 1 + rand.IntN(5) }, 1, 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rdb := client(t, testenv.Redis(t))
			ready(t, rdb, segmented)
			var (
				mu   sync.Mutex
				all  []text
				both sync.WaitGroup
			)
			for _, name := range []string{"a", "b"} {
				var segments []int
				for range 20 {
					segments = append(segments, row.segments())
				}
				both.Go(func() {
					sent := sendTexts(t, worker(t, rdb, name), segments, row.each)
					mu.Lock()
					defer mu.Unlock()
					all = append(all, sent...)
				})
			}
			both.Wait()
			withinSpeed(t, all, row.slack)
		})
	}
}

// TestCharge_WithoutRedis: a worker that keeps to its share leaves out slots of it, and pays what it owes when Redis is away.
func TestCharge_WithoutRedis(t *testing.T) {
	t.Parallel()
	server := testenv.OwnRedis(t)
	rdb := client(t, server.URL)
	p := pace.New(rdb, nil, "a", func(error) {})
	watch(t, p)
	ready(t, rdb, segmented)
	sendTexts(t, p, []int{2}, 1)
	testenv.Check(t, server.Pause())
	defer func() { testenv.Check(t, server.Resume()) }()
	sent := sendTexts(t, p, []int{3, 3, 3, 1, 1}, 1)[1:] // the first one may still have a slot from Redis
	for i := range sent[1:] {
		if apart := sent[i+1].to.Sub(sent[i].from); apart+time.Millisecond < time.Duration(2*sent[i].segments)*segmented.Every {
			t.Errorf("text %d of %d segments is followed by another after %s", i, sent[i].segments, apart)
		}
	}
}
