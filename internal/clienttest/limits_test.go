package clienttest

import (
	"context"
	"fmt"
	"testing"

	"github.com/sendquota/sendquota/client"
)

// A speed limit is there once it is named. What is refused costs nothing.
func ExampleLimitsAPI_Take() {
	ctx, c := context.Background(), newClient()
	take := client.NewTake{Key: "user-7:login", Limits: []client.NewLimit{{Algorithm: client.NewLimitAlgorithmSlidingLog, Limit: 2, Per: "1h"}}}
	for range 3 {
		taken, err := c.Limits.Take(ctx, take)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(taken.Allowed, taken.Limits[0].Remaining)
	}
	taken, err := c.Limits.Refund(ctx, take)
	fmt.Println(taken.Allowed, taken.Limits[0].Remaining, err)
	// Output:
	// true 1
	// true 0
	// false 0
	// true 1 <nil>
}

// TestLimits checks that a dry run changes nothing, a refund gives back its cost, and a reset gives back all. A cost
// above the limit has no time to wait for.
func TestLimits(t *testing.T) {
	t.Parallel()
	ctx, c := t.Context(), newClient()
	take := client.NewTake{Key: "limits", Cost: 3, Limits: []client.NewLimit{
		{Algorithm: client.NewLimitAlgorithmTokenBucket, Limit: 10, Per: "8760h", Refill: client.NewLimitRefillInterval},
		{Algorithm: client.NewLimitAlgorithmFixedWindow, Limit: 5, Per: "24h", Key: "limits:window"},
	}}
	dry := take
	dry.DryRun = true
	never := dry
	never.Cost = 6
	for _, row := range []struct {
		name           string
		call           func(context.Context, client.NewTake) (client.Taken, error)
		take           client.NewTake
		allowed        bool
		bucket, window int64
	}{
		{"dry", c.Limits.Take, dry, true, 10, 5},
		{"take", c.Limits.Take, take, true, 7, 2},
		{"refused", c.Limits.Take, take, false, 7, 2},
		{"dry refund", c.Limits.Refund, dry, false, 7, 2},
		{"refund", c.Limits.Refund, client.NewTake{Key: "limits", Cost: 1, Limits: take.Limits}, true, 8, 3},
		{"reset", c.Limits.Reset, take, true, 10, 5},
		{"never", c.Limits.Take, never, false, 10, 5},
	} {
		taken, err := row.call(ctx, row.take)
		if err != nil || len(taken.Limits) != 2 {
			t.Fatalf("%s: %+v, %v", row.name, taken, err)
		}
		bucket, window := taken.Limits[0], taken.Limits[1]
		if taken.Allowed != row.allowed || bucket.Remaining != row.bucket || window.Remaining != row.window || window.Key != "limits:window" {
			t.Errorf("%s: %+v", row.name, taken)
		}
		if never := window.RetryAfterMs == nil; never != (row.name == "never") || !never && (*window.RetryAfterMs > 0) == window.Allowed {
			t.Errorf("%s: %+v", row.name, window)
		}
	}
}
