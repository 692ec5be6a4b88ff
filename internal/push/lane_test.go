package push_test

import (
	"testing"

	"github.com/sendquota/sendquota/internal/push"
)

// TestLanes_CoverAllShards checks that each recipient belongs to exactly one lane, for every number of lanes.
func TestLanes_CoverAllShards(t *testing.T) {
	for n := 1; n <= push.Shards; n *= 2 {
		lanes := push.Lanes(n)
		for key := int64(-1000); key < 1000; key++ {
			found := 0
			for _, l := range lanes {
				if s := push.Shard(key); s >= l.First && s <= l.Last {
					found++
				}
			}
			l := push.LaneOf(lanes, key)
			if s := push.Shard(key); found != 1 || s < l.First || s > l.Last {
				t.Fatalf("%d lanes: recipient %d is in %d of them; LaneOf returns %s", n, key, found, l)
			}
		}
	}
}
