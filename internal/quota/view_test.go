package quota_test

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sendquota/sendquota/internal/quota"
)

// cut returns the part of a calendar that a view from … until contains.
func cut(bookings []quota.Booking, from, until time.Time) quota.View {
	var seen []quota.Booking
	for _, b := range bookings {
		if b.At.After(from) && b.At.Before(until) {
			seen = append(seen, b)
		}
	}
	return quota.View{From: from, Until: until, Timeline: quota.NewTimeline(seen)}
}

// TestDecide_CompleteViews compares decisions on a part of the calendar with decisions on all of it.
func TestDecide_CompleteViews(t *testing.T) {
	t.Parallel()
	complete, incomplete := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		c := scopedCalendars(grain, 0).Draw(t, "calendar")
		asked := moments(time.Second).Draw(t, "asked")
		now := noon.Add(-span).Add(moments(time.Second).Draw(t, "now").Sub(noon))
		all, ok := c.policy.Decide(quota.View{Timeline: quota.NewTimeline(c.bookings)}, asked, now)
		if !ok {
			t.Fatalf("%v: a view of everything is incomplete", c)
		}
		for before := time.Duration(0); before <= span; before += 11 * grain {
			for behind := time.Duration(0); behind <= span; behind += 11 * grain {
				part, ok := c.policy.Decide(cut(c.bookings, asked.Add(-before), asked.Add(behind)), asked, now)
				if !ok {
					incomplete++
					continue
				}
				complete++
				if !reflect.DeepEqual(all, part) {
					t.Fatalf("%v at %s, now %s, seen from %s before to %s behind:\n%s", c, asked.Sub(noon), now.Sub(noon), before, behind, cmp.Diff(all, part))
				}
			}
		}
	})
	if complete < 1000 || incomplete < 1000 {
		t.Errorf("%d views sufficed, %d did not: too one-sided to show anything", complete, incomplete)
	}
}

// TestDecide_WideningEnds decides with views of one, two, … times the reach. The decision must be complete when the
// view contains everything.
func TestDecide_WideningEnds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := scopedCalendars(time.Second, 1).Draw(t, "calendar")
		asked := moments(time.Second).Draw(t, "asked")
		now := noon.Add(-span)
		for times := 1; ; times *= 2 {
			around := c.policy.Around(asked, times)
			_, complete := c.policy.Decide(cut(c.bookings, around.From, around.Until), asked, now)
			if complete {
				return
			}
			if around.From.Before(noon.Add(-4*span)) && around.Until.After(noon.Add(4*span)) {
				t.Fatalf("%v at %s: incomplete, seen from %s to %s", c, asked.Sub(noon), around.From, around.Until)
			}
		}
	})
}

// TestAround_SufficesForTheDecision checks that one reach around the time suffices for the decision itself.
func TestAround_SufficesForTheDecision(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := scopedCalendars(grain, 0).Draw(t, "calendar")
		asked := moments(grain).Draw(t, "asked")
		around := c.policy.Around(asked, 1)
		part := c.policy.Violations(cut(c.bookings, around.From, around.Until).Timeline, asked)
		if diff := cmp.Diff(c.policy.Violations(quota.NewTimeline(c.bookings), asked), part); diff != "" {
			t.Fatalf("%v at %s:\n%s", c, asked.Sub(noon), diff)
		}
	})
}

// TestDecide_WholeSecondsAhead checks that only whole seconds are offered, also where bookings and windows end in
// between.
func TestDecide_WholeSecondsAhead(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := scopedCalendars(grain, 1).Draw(t, "calendar")
		asked, now := moments(time.Second).Draw(t, "asked"), moments(time.Second).Draw(t, "now")
		d, _ := c.policy.Decide(quota.View{Timeline: quota.NewTimeline(c.bookings)}, asked, now)
		if d.Allowed() {
			return
		}
		offers := []time.Time{d.Next}
		if !d.Previous.IsZero() {
			offers = append(offers, d.Previous)
			if !d.Previous.After(now) {
				t.Fatalf("%v: at %s it offers %s", c, now.Sub(noon), d.Previous.Sub(noon))
			}
		}
		if slices.ContainsFunc(offers, func(o time.Time) bool {
			return !o.Equal(o.Truncate(time.Second)) || !oracleFree(c.policy, c.bookings, o)
		}) {
			t.Fatalf("%v: offers %v", c, offers)
		}
	})
}

// hours are periods that count no bookings.
type hours struct{ beats }

func (hours) Longest() time.Duration { return 0 }

// TestDecide_QuietHoursAlone checks that a view without bookings is complete if no rule counts bookings.
func TestDecide_QuietHoursAlone(t *testing.T) {
	night := quota.Policy{{Name: "night", Quiet: true, Periods: hours{beats{Every: time.Hour, Until: time.Minute}}}}
	for _, times := range []int{1, 2, 1 << 62} {
		d, complete := night.Decide(night.Around(noon, times), noon, noon.Add(-time.Hour))
		if d.Allowed() || !complete || !d.Next.Equal(noon.Add(time.Minute)) || !d.Previous.Equal(noon.Add(-time.Second)) {
			t.Errorf("%+v, complete %v", d, complete)
		}
	}
}
