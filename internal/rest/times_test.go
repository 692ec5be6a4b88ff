package rest

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestStamp: a time is written in UTC, with the microseconds that are not zero, and never rounded up.
func TestStamp(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		at := time.Unix(rapid.Int64Range(-62135596800, 253402300799).Draw(t, "seconds"), rapid.SampledFrom([]int64{0, 1, 999, 1000, 120_000_000, 999_999_999}).Draw(t, "nanoseconds"))
		at = at.In(time.FixedZone("", rapid.IntRange(-50_000, 50_000).Draw(t, "zone")))
		if got, want := Stamp(at), at.UTC().Format("2006-01-02T15:04:05.999999Z07:00"); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	})
}
