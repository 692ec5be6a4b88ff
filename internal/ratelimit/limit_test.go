package ratelimit

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestValidate(t *testing.T) {
	t.Parallel()
	const ms, s, year = time.Millisecond, time.Second, MaxPer
	for _, tt := range []struct {
		limit  Limit
		fields []string
	}{
		{Limit{FixedWindow, 1, ms, 0, 0}, nil},
		{Limit{FixedWindow, MaxLimit, year, 0, 0}, nil},
		{Limit{SlidingLog, MaxLogLimit, s, 0, 0}, nil},
		{Limit{SlidingWindow, 5, s, 0, ms}, nil},
		{Limit{SlidingWindow, 5, s, 0, s}, nil},
		{Limit{TokenBucket, 1, year, 10, 0}, nil},
		{Limit{TokenBucket, MaxLimit, year, MaxLimit, 0}, nil},
		{Limit{LeakyBucket, 7, s, 3, 0}, nil},

		{Limit{}, []string{"algorithm", "limit", "per"}},
		{Limit{"gcra", 0, 0, -1, -1}, []string{"algorithm", "limit", "per", "burst", "precision"}},
		{Limit{"gcra", 1, s, 1, ms}, []string{"algorithm"}},
		{Limit{FixedWindow, -1, s, 0, 0}, []string{"limit"}},
		{Limit{FixedWindow, MaxLimit + 1, s, 0, 0}, []string{"limit"}},
		{Limit{SlidingLog, MaxLogLimit + 1, s, 0, 0}, []string{"limit"}},
		{Limit{FixedWindow, 1, ms - 1, 0, 0}, []string{"per"}},
		{Limit{FixedWindow, 1, year + ms, 0, 0}, []string{"per"}},
		{Limit{FixedWindow, 1, s + 1, 0, 0}, []string{"per"}},
		{Limit{FixedWindow, 1, s, 1, ms}, []string{"burst", "precision"}},
		{Limit{SlidingLog, 1, s, 1, ms}, []string{"burst", "precision"}},
		{Limit{SlidingWindow, 1, s, 1, ms}, []string{"burst"}},
		{Limit{TokenBucket, 1, s, 1, ms}, []string{"precision"}},
		{Limit{LeakyBucket, 1, s, 1, ms}, []string{"precision"}},
		{Limit{SlidingWindow, 1, s, 0, s + ms}, []string{"precision"}},
		{Limit{SlidingWindow, 1, s + ms, 0, ms}, []string{"precision"}},
		{Limit{SlidingWindow, 1, s, 0, ms + 1}, []string{"precision"}},
		{Limit{SlidingWindow, 1, year, 0, math.MaxInt64}, []string{"precision"}},
		{Limit{TokenBucket, 1, s, MaxLimit + 1, 0}, []string{"burst"}},
		{Limit{TokenBucket, 1, year, 11, 0}, []string{"burst"}},
		{Limit{LeakyBucket, 1, year, MaxLimit, 0}, []string{"burst"}},
		{Limit{LeakyBucket, math.MinInt, math.MinInt64, math.MinInt, 0}, []string{"limit", "per", "burst"}},
	} {
		var fields []string
		for _, f := range tt.limit.Validate() {
			fields = append(fields, f.Field)
			if f.Message == "" || f.Value == nil {
				t.Errorf("%+v: %+v", tt.limit, f)
			}
		}
		if diff := cmp.Diff(tt.fields, fields); diff != "" {
			t.Errorf("%+v (-want +got):\n%s", tt.limit, diff)
		}
	}
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ given, want Limit }{
		{Limit{TokenBucket, 5, time.Second, 0, 0}, Limit{TokenBucket, 5, time.Second, 5, 0}},
		{Limit{LeakyBucket, 5, time.Second, 0, 0}, Limit{LeakyBucket, 5, time.Second, 1, 0}},
		{Limit{SlidingWindow, 5, time.Minute, 0, 0}, Limit{SlidingWindow, 5, time.Minute, 0, time.Second}},
		{Limit{SlidingWindow, 5, time.Second, 0, 0}, Limit{SlidingWindow, 5, time.Second, 0, 17 * time.Millisecond}},
		{Limit{SlidingWindow, 5, time.Millisecond, 0, 0}, Limit{SlidingWindow, 5, time.Millisecond, 0, time.Millisecond}},
		{Limit{SlidingWindow, 5, time.Minute, 0, time.Minute}, Limit{SlidingWindow, 5, time.Minute, 0, time.Minute}},
		{Limit{FixedWindow, 5, time.Second, 0, 0}, Limit{FixedWindow, 5, time.Second, 0, 0}},
	} {
		if got := tt.given.WithDefaults(); got != tt.want {
			t.Errorf("%+v is %+v, want %+v", tt.given, got, tt.want)
		}
	}
}
