package schedule_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/schedule"
)

// TestService_AvailabilityInParts: an availability that is too large comes in parts, which together contain each free
// second once.
func TestService_AvailabilityInParts(t *testing.T) {
	t.Parallel()
	const bookings, rules = 400, 30
	var policy quota.Policy
	for i := range rules { // every rule blocks around each booking, the last one for half a minute
		policy = append(policy, quota.Rule{Name: fmt.Sprintf("rule-%d", i), Limit: 1, Window: time.Duration(i+1) * time.Second})
	}
	b := newServers(t).open(t, policy)
	from, members := began.Add(time.Hour), make([]schedule.Member, bookings)
	for i := range members {
		members[i].Request = schedule.Request{Content: push.Content{Recipient: "anna", Message: json.RawMessage(`{}`)}, SendAt: from.Add(time.Duration(i+1) * time.Minute)}
	}
	if err := b.SubmitBatch(t.Context(), b.tenant, members, true, schedule.Options{}); err != nil {
		t.Fatal(err)
	}
	until := from.Add((bookings + 1) * time.Minute)
	var free time.Duration
	parts, at, last := 0, from, time.Time{}
	for !at.IsZero() {
		a, err := b.Availability(t.Context(), quota.Recipient{Tenant: b.tenant, ID: "anna"}, quota.Kind{}, at, until, uuid.Nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range a.Free {
			if s.From.Before(last) || s.From.Before(at) || !a.Next.IsZero() && s.Until.After(a.Next) {
				t.Fatalf("%v lies before %s, or after the end of its part, %s", s, last, a.Next)
			}
			last, free = s.Until, free+s.Until.Sub(s.From)
		}
		parts, at = parts+1, a.Next
	}
	if want := until.Sub(from) - bookings*59*time.Second; free != want || parts < 2 {
		t.Errorf("%s are free in %d parts, want %s", free, parts, want)
	}
}
