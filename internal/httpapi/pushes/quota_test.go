package pushes

import (
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/quota"
)

// TestSlots_RulesNamedOnce: after a limit was lowered, several runs of bookings can block the same stretch.
func TestSlots_RulesNamedOnce(t *testing.T) {
	r := quota.Rule{Name: "r", Limit: 2, Window: time.Hour}
	from, until := time.Unix(0, 0), time.Unix(60, 0)
	views := blockedViews([]quota.Interval{{From: from, Until: until, Rule: r}, {From: from, Until: until, Rule: r}})
	if len(views) != 1 || len(views[0].Rules) != 1 {
		t.Errorf("%+v", views)
	}
}
