package store

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// TestWhatIsTakenBackIsNotNear: of two orders decided together, the one that is
// rehearsed leaves nothing, and the other is told with its own numbers.
func TestWhatIsTakenBackIsNotNear(t *testing.T) {
	now := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	draft := func(recipient string) Draft {
		return Draft{Push: push.Push{ID: uuid.New(), Recipient: recipient, SendAt: now}}
	}
	full, empty := draft("full"), draft("empty")
	j := &decider{
		now: now, at: map[quota.Recipient]int{{ID: "full"}: 0, {ID: "empty"}: 1}, existing: map[uuid.UUID]push.Push{}, requests: map[uuid.UUID][]byte{},
		views: []quota.View{{Timeline: quota.NewTimeline([]quota.Booking{{ID: uuid.New(), At: now}})}, {}},
	}
	policy := quota.Policy{{Name: "two", Limit: 2, Window: time.Hour}}
	j.order(Order{Drafts: []Draft{full}, Policy: policy, DryRun: true})
	j.order(Order{Drafts: []Draft{empty}, Policy: policy})
	if len(j.granted) != 1 || len(j.usage) != 1 || j.usage[0][0].Used != 1 {
		t.Errorf("granted %d, with usage %+v", len(j.granted), j.usage)
	}
}
