package ratelimit

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestLimit_Validate(t *testing.T) {
	t.Parallel()
	const ms, s, year = time.Millisecond, time.Second, MaxPer
	for _, tt := range []struct {
		limit  Limit
		fields []string
	}{
		{Limit{Algorithm: FixedWindow, Limit: 1, Per: ms}, nil},
		{Limit{Algorithm: FixedWindow, Limit: MaxLimit, Per: year}, nil},
		{Limit{Algorithm: SlidingLog, Limit: MaxLogLimit, Per: s}, nil},
		{Limit{Algorithm: SlidingWindow, Limit: 5, Per: s, Precision: ms}, nil},
		{Limit{Algorithm: SlidingWindow, Limit: 5, Per: s, Precision: s}, nil},
		{Limit{Algorithm: TokenBucket, Limit: 1, Per: year, Burst: 10}, nil},
		{Limit{Algorithm: TokenBucket, Limit: MaxLimit, Per: year, Burst: MaxLimit}, nil},
		{Limit{Algorithm: LeakyBucket, Limit: 7, Per: s, Burst: 3}, nil},

		{Limit{}, []string{"algorithm", "limit", "per"}},
		{Limit{Algorithm: "gcra", Limit: 0, Per: 0, Burst: -1, Precision: -1}, []string{"algorithm", "limit", "per", "burst", "precision"}},
		{Limit{Algorithm: "gcra", Limit: 1, Per: s, Burst: 1, Precision: ms}, []string{"algorithm"}},
		{Limit{Algorithm: FixedWindow, Limit: -1, Per: s}, []string{"limit"}},
		{Limit{Algorithm: FixedWindow, Limit: MaxLimit + 1, Per: s}, []string{"limit"}},
		{Limit{Algorithm: SlidingLog, Limit: MaxLogLimit + 1, Per: s}, []string{"limit"}},
		{Limit{Algorithm: FixedWindow, Limit: 1, Per: ms - 1}, []string{"per"}},
		{Limit{Algorithm: FixedWindow, Limit: 1, Per: year + ms}, []string{"per"}},
		{Limit{Algorithm: FixedWindow, Limit: 1, Per: s + 1}, []string{"per"}},
		{Limit{Algorithm: FixedWindow, Limit: 1, Per: s, Burst: 1, Precision: ms}, []string{"burst", "precision"}},
		{Limit{Algorithm: SlidingLog, Limit: 1, Per: s, Burst: 1, Precision: ms}, []string{"burst", "precision"}},
		{Limit{Algorithm: SlidingWindow, Limit: 1, Per: s, Burst: 1, Precision: ms}, []string{"burst"}},
		{Limit{Algorithm: TokenBucket, Limit: 1, Per: s, Burst: 1, Precision: ms}, []string{"precision"}},
		{Limit{Algorithm: LeakyBucket, Limit: 1, Per: s, Burst: 1, Precision: ms}, []string{"precision"}},
		{Limit{Algorithm: SlidingWindow, Limit: 1, Per: s, Precision: s + ms}, []string{"precision"}},
		{Limit{Algorithm: SlidingWindow, Limit: 1, Per: s + ms, Precision: ms}, []string{"precision"}},
		{Limit{Algorithm: SlidingWindow, Limit: 1, Per: s, Precision: ms + 1}, []string{"precision"}},
		{Limit{Algorithm: SlidingWindow, Limit: 1, Per: year, Precision: math.MaxInt64}, []string{"precision"}},
		{Limit{Algorithm: TokenBucket, Limit: 1, Per: s, Burst: MaxLimit + 1}, []string{"burst"}},
		{Limit{Algorithm: TokenBucket, Limit: 1, Per: year, Burst: 11}, []string{"burst"}},
		{Limit{Algorithm: LeakyBucket, Limit: 1, Per: year, Burst: MaxLimit}, []string{"burst"}},
		{Limit{Algorithm: LeakyBucket, Limit: math.MinInt, Per: math.MinInt64, Burst: math.MinInt}, []string{"limit", "per", "burst"}},
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

func TestLimit_Defaults(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ given, want Limit }{
		{Limit{Algorithm: TokenBucket, Limit: 5, Per: time.Second}, Limit{Algorithm: TokenBucket, Limit: 5, Per: time.Second, Burst: 5, Refill: Greedy}},
		{Limit{Algorithm: LeakyBucket, Limit: 5, Per: time.Second}, Limit{Algorithm: LeakyBucket, Limit: 5, Per: time.Second, Burst: 1}},
		{Limit{Algorithm: SlidingWindow, Limit: 5, Per: time.Minute}, Limit{Algorithm: SlidingWindow, Limit: 5, Per: time.Minute, Precision: time.Second}},
		{Limit{Algorithm: SlidingWindow, Limit: 5, Per: time.Second}, Limit{Algorithm: SlidingWindow, Limit: 5, Per: time.Second, Precision: 17 * time.Millisecond}},
		{Limit{Algorithm: SlidingWindow, Limit: 5, Per: time.Millisecond}, Limit{Algorithm: SlidingWindow, Limit: 5, Per: time.Millisecond, Precision: time.Millisecond}},
		{Limit{Algorithm: SlidingWindow, Limit: 5, Per: time.Minute, Precision: time.Minute}, Limit{Algorithm: SlidingWindow, Limit: 5, Per: time.Minute, Precision: time.Minute}},
		{Limit{Algorithm: FixedWindow, Limit: 5, Per: time.Second}, Limit{Algorithm: FixedWindow, Limit: 5, Per: time.Second}},
	} {
		if got := tt.given.WithDefaults(); got != tt.want {
			t.Errorf("%+v is %+v, want %+v", tt.given, got, tt.want)
		}
	}
}
