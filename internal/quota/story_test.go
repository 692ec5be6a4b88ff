package quota_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sendquota/sendquota/internal/quota"
)

// TestPolicy_Story covers the example of the package's documentation: 2 per hour, booked at 10:00, 10:20 and 11:30.
func TestPolicy_Story(t *testing.T) {
	p := per(2, time.Hour)
	bookings := booked(t, "10:00", "10:20", "11:30")
	now := at(t, "08:00")

	// 10:00 and 10:20 block (09:20, 11:00); 10:20 and 11:30 block nothing.
	want := []quota.Interval{{From: at(t, "09:20"), Until: at(t, "11:00"), Rule: p[0], Bookings: bookings[:2]}}
	if diff := cmp.Diff(want, p.Blocked(quota.NewTimeline(bookings), at(t, "00:00"), at(t, "+00:00"))); diff != "" {
		t.Fatal(diff)
	}

	// 10:45 is refused because of those two; 11:00 and 09:20 are offered.
	d, complete := p.Decide(quota.View{Timeline: quota.NewTimeline(bookings)}, at(t, "10:45"), now)
	refused := quota.Decision{
		Violations: []quota.Violation{{Rule: p[0], Conflicts: bookings[:2]}},
		Next:       at(t, "11:00"), Previous: at(t, "09:20"),
	}
	if diff := cmp.Diff(refused, d); diff != "" || !complete {
		t.Fatal(diff, complete)
	}

	// The two wrong shortcuts: 09:30 sees no earlier booking, and 11:00 sees two within an hour on both sides.
	if d, _ := p.Decide(quota.View{Timeline: quota.NewTimeline(bookings)}, at(t, "09:30"), now); d.Allowed() {
		t.Error("09:30 is free, though with 10:00 and 10:20 it makes three in 50 minutes")
	}
	for _, free := range []string{"09:20", "11:00"} {
		if d, _ := p.Decide(quota.View{Timeline: quota.NewTimeline(bookings)}, at(t, free), now); !d.Allowed() {
			t.Errorf("%s is refused: %+v", free, d)
		}
	}

	// An hour later 09:20 is gone: there is no earlier time to offer.
	d, complete = p.Decide(quota.View{Timeline: quota.NewTimeline(bookings)}, at(t, "10:45"), at(t, "09:20"))
	if !d.Previous.IsZero() || !d.Next.Equal(at(t, "11:00")) || !complete {
		t.Errorf("at 09:20: %+v", d)
	}

	// 11:00 is booked. It fills an hour with 10:20 and one with 11:30.
	bookings = insert(bookings, booking(3, at(t, "11:00")))
	usage := p.Usage(quota.NewTimeline(bookings), at(t, "11:00"))
	if diff := cmp.Diff([]quota.Usage{{Rule: p[0], Used: 2, Remaining: 0}}, usage); diff != "" {
		t.Error(diff)
	}
	next, _ := p.Next(quota.NewTimeline(bookings), at(t, "10:45"), quota.Second)
	previous, _ := p.Previous(quota.NewTimeline(bookings), at(t, "10:45"), quota.Second)
	if !next.Equal(at(t, "12:00")) || !previous.Equal(at(t, "09:20")) {
		t.Errorf("the free times are then %s and %s", next, previous)
	}
}
