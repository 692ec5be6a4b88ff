package campaign

import (
	"cmp"
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
		type text struct {
			at    time.Time
			takes int
		}
		var due []text
		for range rapid.IntRange(0, 60).Draw(t, "pushes") {
			at := began.Add(time.Duration(rapid.IntRange(0, 30).Draw(t, "second")) * time.Second)
			segments := rapid.IntRange(0, 3).Draw(t, "segments")
			one := text{at, 1}
			if d.segmented {
				one.takes = max(segments, 1)
			}
			due = append(due, one)
			d.add(&push.Push{SendAt: at, ExpiresAt: at.Add(wait)}, segments)
		}
		slices.SortFunc(due, func(a, b text) int { return cmp.Or(a.at.Compare(b.at), a.takes-b.takes) })
		var free, want time.Time
		expire := 0
		for _, one := range due {
			begin, at := one.at, one.at
			if free.After(begin) {
				begin = free
			}
			if !begin.Before(at.Add(wait)) {
				expire++
				continue
			}
			want, free = begin, begin.Add(time.Duration(one.takes)*d.every)
		}
		if last, n := d.end(); !last.Equal(want) || n != expire {
			t.Fatalf("the last leaves at %s and %d expire, want %s and %d", last, n, want, expire)
		}
	})
}
