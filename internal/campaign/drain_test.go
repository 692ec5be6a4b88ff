package campaign

import (
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sendquota/sendquota/internal/push"
)

// TestDrain_Oracle compares the estimate with a channel that sends one push after another.
func TestDrain_Oracle(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := &drain{every: time.Duration(rapid.IntRange(0, 5000).Draw(t, "every_ms")) * time.Millisecond, segmented: rapid.Bool().Draw(t, "segmented")}
		began := time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
		wait := time.Duration(rapid.IntRange(1, 20).Draw(t, "wait_s")) * time.Second
		d.free[push.Bulk.Index()] = began.Add(time.Duration(rapid.IntRange(-10, 30).Draw(t, "free_s")) * time.Second)
		type second struct{ pushes, takes int }
		due := map[time.Time]*second{}
		for range rapid.IntRange(0, 60).Draw(t, "pushes") {
			at := began.Add(time.Duration(rapid.IntRange(0, 30).Draw(t, "second")) * time.Second)
			segments := rapid.IntRange(0, 3).Draw(t, "segments")
			if due[at] == nil {
				due[at] = &second{}
			}
			due[at].pushes++
			if due[at].takes++; d.segmented {
				due[at].takes += max(segments, 1) - 1
			}
			d.add(&push.Push{Level: push.Bulk, SendAt: at, ExpiresAt: at.Add(wait)}, segments)
		}
		var free, want time.Time
		if d.every > 0 {
			free = d.free[push.Bulk.Index()]
		}
		expire := 0
		for _, at := range slices.SortedFunc(maps.Keys(due), time.Time.Compare) {
			for range due[at].pushes {
				begin := at
				if free.After(begin) {
					begin = free
				}
				if !begin.Before(at.Add(wait)) {
					expire++
					continue
				}
				want, free = begin, begin.Add(time.Duration(due[at].takes)*d.every/time.Duration(due[at].pushes))
			}
		}
		if last, n := d.end(); !last.Equal(want) || n != expire {
			t.Fatalf("the last leaves at %s and %d expire, want %s and %d", last, n, want, expire)
		}
	})
}
