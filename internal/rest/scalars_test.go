package rest

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestInteger_ZeroFraction: a number of JSON whose fraction is zero is an integer, however it is written, and no other is.
func TestInteger_ZeroFraction(t *testing.T) {
	whole := Table[int]{Fields: []Field[int]{{"n", Required, Integer(func(to *int, n int) { *to = n }, -500, 1<<53), "", nil}}}
	for text, want := range map[string]int{
		"5": 5, "5.0": 5, "5.000": 5, "1e0": 1, "5E+0": 5, "1.5e1": 15, "1.50E2": 150, "100e-2": 1, "0.5e1": 5, "-5.0": -5, "-0.0": 0, "0e99": 0, "-0": 0, "1e15": 1_000_000_000_000_000,
	} {
		var n int
		var wrong FieldErrors
		if whole.Read(newReader([]byte(`{"n":`+text+`}`)), &n, &wrong); n != want || len(wrong.List) > 0 {
			t.Errorf("%s is %d, want %d: %v", text, n, want, wrong.List)
		}
	}
	for _, text := range []string{"5.5", "1e-1", "-0.1", "1e99", "1e999999999", "1e9999999999999999999", "1e-9999999999999999999", "-501.0", `"5"`, `"5.0"`, "true", "null", "[5.0]", `{"e":1.0}`} {
		var n int
		var wrong FieldErrors
		if whole.Read(newReader([]byte(`{"n":`+text+`}`)), &n, &wrong); len(wrong.List) != 1 || !strings.Contains(wrong.List[0].Message, "whole number") {
			t.Errorf("%s is %d: %v", text, n, wrong.List)
		}
	}
}

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
