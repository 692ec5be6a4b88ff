package quota_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sendquota/sendquota/internal/quota"
)

// TestFreeSpans_Oracle compares each second of a span with the oracle.
func TestFreeSpans_Oracle(t *testing.T) {
	t.Parallel()
	free, taken := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		c := scopedCalendars(grain, 0).Draw(t, "calendar")
		of := quota.Span{From: moments(time.Second).Draw(t, "from").Add(-5 * time.Second)}
		of.Until = of.From.Add(time.Duration(rapid.IntRange(0, 80).Draw(t, "seconds")) * time.Second)
		spans := quota.FreeSpans(c.policy.Blocked(quota.NewTimeline(c.bookings), of.From, of.Until), of)
		for i, s := range spans {
			if !s.From.Before(s.Until) || i > 0 && !spans[i-1].Until.Before(s.From) {
				t.Fatalf("%v: the spans %v are empty, touch or overlap", c, spans)
			}
		}
		n := 0
		for at := of.From.Add(-3 * time.Second); at.Before(of.Until.Add(3 * time.Second)); at = at.Add(time.Second) {
			for n < len(spans) && !spans[n].Until.After(at) {
				n++
			}
			got := n < len(spans) && spans[n].Has(at)
			if want := of.Has(at) && oracleFree(c.policy, c.bookings, at); got != want {
				t.Fatalf("%v at %s of %s: free %v, oracle: %v", c, at.Sub(noon), of.From.Sub(noon), got, want)
			}
			if got {
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

// TestFreeSpans_BetweenSeconds checks that an interval between two seconds does not split a span.
func TestFreeSpans_BetweenSeconds(t *testing.T) {
	of := quota.Span{From: noon, Until: noon.Add(time.Minute)}
	between := quota.Interval{From: noon.Add(time.Second), Until: noon.Add(2 * time.Second)}
	if got := quota.FreeSpans([]quota.Interval{between}, of); len(got) != 1 || got[0] != of {
		t.Errorf("%v, want %v", got, of)
	}
}

// TestSeconds_Ends checks that an open end leaves its first second free, a closed end does not, and fractions round up.
func TestSeconds_Ends(t *testing.T) {
	at := func(d time.Duration) time.Time { return noon.Add(d) }
	for name, c := range map[string]struct {
		blocked quota.Interval
		want    quota.Span
	}{
		"open":            {quota.Interval{From: at(0), Until: at(time.Minute)}, quota.Span{From: at(time.Second), Until: at(time.Minute)}},
		"closed":          {quota.Interval{From: at(0), Until: at(time.Minute), FromClosed: true}, quota.Span{From: at(0), Until: at(time.Minute)}},
		"in fractions":    {quota.Interval{From: at(grain), Until: at(time.Minute + grain)}, quota.Span{From: at(time.Second), Until: at(time.Minute + time.Second)}},
		"without ends":    {quota.Interval{}, quota.Span{}},
		"between seconds": {quota.Interval{From: at(grain / 2), Until: at(grain)}, quota.Span{From: at(time.Second), Until: at(time.Second)}},
	} {
		if got := c.blocked.Seconds(); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
