package calendar

import (
	"testing"
	"time"
)

// TestDrained: an hour with more messages than a channel can send delays the next one.
func TestDrained(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
	var free time.Time
	for i, row := range []struct {
		hour      int
		scheduled int64
		want      time.Duration // after at
	}{{0, 3000, 3 * time.Hour}, {1, 500, 3*time.Hour + 30*time.Minute}, {5, 100, 5*time.Hour + 6*time.Minute}} {
		free = drained(free, at.Add(time.Duration(row.hour)*time.Hour), row.scheduled, 1000)
		if got := free.Sub(at); got != row.want {
			t.Errorf("hour %d: drained after %s, want %s", i, got, row.want)
		}
	}
}
