package quota_test

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/quota"
)

// A recipient may get two messages an hour, and has three bookings. Is there a place at 10:45, and if not, when is
// the nearest one?
func ExamplePolicy_Decide() {
	policy := quota.Policy{{Name: "per-hour", Limit: 2, Window: time.Hour}}
	clock := func(hour, minute int) time.Time { return time.Date(2026, 12, 1, hour, minute, 0, 0, time.UTC) }
	view := quota.View{Timeline: quota.NewTimeline([]quota.Booking{
		{ID: uuid.New(), At: clock(10, 0)}, {ID: uuid.New(), At: clock(10, 20)}, {ID: uuid.New(), At: clock(11, 30)},
	})}

	d, _ := policy.Decide(view, clock(10, 45), clock(8, 0))
	for _, v := range d.Violations {
		fmt.Printf("%s is full: %d bookings are in the way\n", v.Rule.Name, len(v.Conflicts))
	}
	fmt.Println("next free time:", d.Next.Format(time.TimeOnly))
	fmt.Println("previous free time:", d.Previous.Format(time.TimeOnly))
	// Output:
	// per-hour is full: 2 bookings are in the way
	// next free time: 11:00:00
	// previous free time: 09:20:00
}

// The blocked intervals of a recipient are what a calendar shows.
func ExamplePolicy_Blocked() {
	policy := quota.Policy{{Name: "per-minute", Limit: 1, Window: time.Minute}}
	noon := time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)
	for _, i := range policy.Blocked(quota.NewTimeline([]quota.Booking{{ID: uuid.New(), At: noon}}), noon.Add(-time.Hour), noon.Add(time.Hour)) {
		fmt.Println(i.Rule.Name, "blocks from", i.From.Format(time.TimeOnly), "until", i.Until.Format(time.TimeOnly))
	}
	// Output:
	// per-minute blocks from 11:59:00 until 12:01:00
}
