package zone_test

import (
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/zone"
)

func TestParseLocal(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Time{
		"2026-12-01T09:00:00": time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC),
		"2026-12-01T09:00":    time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC),
		"2028-02-29T23:59:59": time.Date(2028, 2, 29, 23, 59, 59, 0, time.UTC),
	} {
		if got, err := zone.ParseLocal(text); err != nil || !got.Equal(want) {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
	for _, text := range []string{
		"", "2026-12-01", "09:00", "2026-12-01T09", "2026-12-01 09:00:00", "2026-12-01T09:00:00Z", "2026-12-01T09:00:00+01:00",
		"2026-12-01T09:00:00.5", "2026-12-01T09:00:00,5", "2026-12-01T09:00:00.", "2026-12-01T9:00:00", "2026-12-01T9:00:000",
		"2026-12-01T24:00:00", "2026-12-01T23:59:60", "2026-02-29T09:00:00", "2026-13-01T09:00:00", "2026-12-01T09:00:00 ",
	} {
		if got, err := zone.ParseLocal(text); err == nil {
			t.Errorf("%q is %s", text, got)
		}
	}
}
