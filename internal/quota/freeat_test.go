package quota_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sendquota/sendquota/internal/quota"
)

// TestFreeAt_Oracle compares each time with the oracle.
func TestFreeAt_Oracle(t *testing.T) {
	t.Parallel()
	free, taken := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		c := scopedCalendars(grain, 0).Draw(t, "calendar")
		first := moments(grain).Draw(t, "first")
		step := time.Duration(rapid.IntRange(1, 12).Draw(t, "grains")) * grain
		got := make([]bool, rapid.IntRange(0, 60).Draw(t, "times"))
		c.policy.FreeAt(quota.NewTimeline(c.bookings), first, step, got)
		for i := range got {
			at := first.Add(time.Duration(i) * step)
			if want := oracleFree(c.policy, c.bookings, at); got[i] != want {
				t.Fatalf("%v: number %d from %s on, by %s: %v, oracle: %v", c, i, first.Sub(noon), step, got[i], want)
			}
			if got[i] {
				free++
			} else {
				taken++
			}
		}
	})
	if free < 200 || taken < 200 {
		t.Errorf("%d free and %d taken: nothing was tested", free, taken)
	}
}

// BenchmarkFreeAt reads the quarters of an hour of a day for a recipient with three bookings.
func BenchmarkFreeAt(b *testing.B) {
	p := quota.Policy{{Name: "per-minute", Limit: 1, Window: time.Minute}, {Name: "per-hour", Limit: 5, Window: time.Hour}, {Name: "per-day", Limit: 3, Window: 24 * time.Hour}}
	line, free := quota.NewTimeline(crowd(3, 5*time.Hour)), make([]bool, 96)
	for b.Loop() {
		p.FreeAt(line, noon, 15*time.Minute, free)
	}
}
