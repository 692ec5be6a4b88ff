package campaigns

import (
	"strings"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/console/frame"
)

// TestClockNote: clocks that are set around a time of a schedule are spoken of.
func TestClockNote(t *testing.T) {
	t.Parallel()
	berlin := frame.LoadZone("Europe/Berlin")
	at := func(text string) time.Time {
		moment, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return moment.In(berlin)
	}
	for _, c := range []struct{ cron, before, at, want string }{
		{"0 9 * * *", "2026-03-27T08:00:00Z", "2026-03-28T08:00:00Z", ""},
		{"0 9 * * *", "2026-03-28T08:00:00Z", "2026-03-29T07:00:00Z", "went forward since"},
		{"30 2 * * *", "2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z", "at this time. A run in the skipped hour"},
		{"0 3 * * *", "2026-03-28T02:00:00Z", "2026-03-29T01:00:00Z", "go forward at this time."}, // three o'clock is not left out
		{"@every 1h", "2026-03-29T00:00:00Z", "2026-03-29T01:00:00Z", "go forward at this time."},
		{"30 2 * * *", "2026-10-24T00:30:00Z", "2026-10-25T00:30:00Z", "twice. It runs once, at the first."},
		{"30 * * * *", "2026-10-24T23:30:00Z", "2026-10-25T00:30:00Z", "twice. It runs both times."},
		{"30 * * * *", "2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z", "went back since"},
		{"@every 1h", "2026-10-24T23:30:00Z", "2026-10-25T00:30:00Z", ""},
		{"0 9 * * *", "2026-10-24T07:00:00Z", "2026-10-25T08:00:00Z", "went back since"},
		{"30 0 * * *", "2026-10-23T22:30:00Z", "2026-10-24T22:30:00Z", ""},
	} {
		if note := clockNote(c.cron, at(c.before), at(c.at)); c.want == "" && note != "" || !strings.Contains(note, c.want) {
			t.Errorf("%s, %s after %s: %q, want %q", c.cron, c.at, c.before, note, c.want)
		}
	}
}
