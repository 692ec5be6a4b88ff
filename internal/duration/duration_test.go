package duration

import (
	"testing"
	"time"
)

// TestParse: days come first; the rest is like Go's durations.
func TestParse(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"30d": 30 * day, "1d12h": 36 * time.Hour, "0.5d": 12 * time.Hour, "-1d": -day, "-1d1h": -25 * time.Hour, "0d": 0, "90s": 90 * time.Second, "720h": 30 * day, "0": 0,
	} {
		if got, err := Parse(text); got != want || err != nil {
			t.Errorf("%s is %s, want %s: %v", text, got, want, err)
		}
	}
	for _, text := range []string{"", "d", "1D", "1h2d", "1d2d", "1d-1h", "1d+1h", "1 d", "30", "1dd", "999999999d", "1d5"} {
		if got, err := Parse(text); err == nil {
			t.Errorf("%q is %s", text, got)
		}
	}
}

// TestWords: durations in words.
func TestWords(t *testing.T) {
	t.Parallel()
	for want, d := range map[string]time.Duration{
		"1 minute": time.Minute, "1 year": 8760 * time.Hour, "7 days": 168 * time.Hour, "1 hour and 30 minutes": 90 * time.Minute, "1 second": time.Second,
		"500 milliseconds": 500 * time.Millisecond, "0 seconds": 0, "1 day and 1 second": 24*time.Hour + time.Second, "20 microseconds": 20 * time.Microsecond,
		"2 days, 3 hours and 1 millisecond": 51*time.Hour + time.Millisecond, "-15 minutes": -15 * time.Minute, "1 nanosecond": 1,
	} {
		if got := Words(d); got != want {
			t.Errorf("%s is %q, want %q", d, got, want)
		}
	}
}

// TestEach: a single unit has no number.
func TestEach(t *testing.T) {
	t.Parallel()
	for want, d := range map[string]time.Duration{
		"minute": time.Minute, "5 minutes": 5 * time.Minute, "1 hour and 30 minutes": 90 * time.Minute, "day": 24 * time.Hour, "11 hours": 11 * time.Hour,
	} {
		if got := Each(d); got != want {
			t.Errorf("%s is %q, want %q", d, got, want)
		}
	}
}
