package push_test

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
)

// TestNewID_WeekAndShard checks that an id is a UUIDv7 with the week of the send time and the recipient's shard.
func TestNewID_WeekAndShard(t *testing.T) {
	seen := map[uuid.UUID]bool{}
	for _, at := range []time.Time{
		time.Date(2026, 11, 22, 23, 59, 59, 0, time.UTC), time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC), time.Date(2078, 6, 1, 0, 0, 0, 0, time.UTC),
		time.Date(2026, 11, 23, 8, 0, 0, 0, time.FixedZone("", 9*3600)),
	} {
		for key := range int64(300) {
			id := push.NewID(at, key-150)
			if id.Version() != 7 || id.Variant() != uuid.RFC4122 {
				t.Fatalf("%s has version %d", id, id.Version())
			}
			if want := at.UTC().Truncate(7 * 24 * time.Hour); !push.WeekOf(id).Equal(want) || want.Weekday() != time.Monday {
				t.Errorf("%s: %s, want %s", id, push.WeekOf(id), want)
			}
			if got := int(id[15]); got != push.Shard(key-150) {
				t.Errorf("%s: shard %d, want %d", id, got, push.Shard(key-150))
			}
			if age := time.Since(time.Unix(id.Time().UnixTime())); age < -time.Second || age > time.Minute {
				t.Errorf("%s was made %s ago", id, age)
			}
			seen[id] = true
		}
	}
	if len(seen) != 1200 {
		t.Errorf("%d ids", len(seen))
	}
}
