package quota_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/sendquota/sendquota/internal/quota"
)

func TestViolations_Oracle(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := scopedCalendars(grain, 0).Draw(t, "calendar")
		at := moments(grain).Draw(t, "at")
		violations := c.policy.Violations(quota.NewTimeline(c.bookings), at)
		for n, r := range c.policy {
			i := slices.IndexFunc(violations, func(v quota.Violation) bool { return v.Rule == r })
			broken := oracleBroken(r, c.bookings, at)
			if r.Reserved > 0 && oracleBroken(c.policy[n-1], c.bookings, at) {
				broken = false // the rule appears already
			}
			if broken != (i >= 0) {
				t.Fatalf("%s at %s (%v): oracle: broken %v", r.Name, at.Sub(noon), c, broken)
			}
			if i >= 0 && !sameIDs(violations[i].Conflicts, oracleConflicts(r, c.bookings, at)) {
				t.Fatalf("%s at %s (%v): conflicts %v", r.Name, at.Sub(noon), c, violations[i].Conflicts)
			}
		}
		if !slices.IsSortedFunc(violations, func(a, b quota.Violation) int { return place(c.policy, a) - place(c.policy, b) }) {
			t.Fatalf("not in the policy's order: %v", violations)
		}
	})
}

func place(p quota.Policy, v quota.Violation) int { return slices.Index(p, v.Rule) }

// sameIDs also wants the bookings in the order of time.
func sameIDs(bookings []quota.Booking, ids []uuid.UUID) bool {
	for _, b := range bookings {
		if !slices.Contains(ids, b.ID) {
			return false
		}
	}
	return len(bookings) == len(ids) && slices.IsSortedFunc(bookings, func(a, b quota.Booking) int { return a.At.Compare(b.At) })
}

// TestBlocked_Oracle compares every grain of time with the oracle.
func TestBlocked_Oracle(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := scopedCalendars(grain, 0).Draw(t, "calendar")
		blocked := c.policy.Blocked(quota.NewTimeline(c.bookings), noon.Add(-span), noon.Add(2*span))
		if !slices.IsSortedFunc(blocked, func(a, b quota.Interval) int { return a.From.Compare(b.From) }) {
			t.Fatalf("not sorted: %v", blocked)
		}
		for at := noon.Add(-span); at.Before(noon.Add(2 * span)); at = at.Add(grain) {
			covered := slices.ContainsFunc(blocked, func(i quota.Interval) bool { return i.Covers(at) })
			if free := oracleFree(c.policy, c.bookings, at); covered == free {
				t.Fatalf("%v at %s: covered %v, free %v", c, at.Sub(noon), covered, free)
			}
		}
	})
}

// TestBlocked_Rules checks of each rule that its intervals cover the times that it forbids, among some bookings, and that
// the bookings of the intervals around a time are its conflicts.
func TestBlocked_Rules(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := scopedCalendars(grain, 0).Draw(t, "calendar")
		from := moments(grain).Draw(t, "from")
		until := from.Add(time.Duration(rapid.IntRange(1, 40).Draw(t, "grains")) * grain)
		blocked := c.policy.Blocked(quota.NewTimeline(c.bookings), from, until)
		for _, i := range blocked {
			if !i.Until.IsZero() && (!i.Until.After(from) || !i.From.Before(until)) {
				t.Fatalf("%v: %s to %s is outside of %s to %s", c, i.From, i.Until, from, until)
			}
		}
		for at := from; at.Before(until); at = at.Add(grain) {
			for _, r := range c.policy {
				var ids []uuid.UUID
				broken := false
				for _, i := range blocked {
					if i.Rule != r || !i.Covers(at) {
						continue
					}
					broken = true
					for _, b := range i.Bookings {
						if !slices.Contains(ids, b.ID) {
							ids = append(ids, b.ID)
						}
					}
				}
				want := oracleBroken(r, c.bookings, at)
				if broken != want || want && !sameSet(ids, oracleConflicts(r, c.bookings, at)) {
					t.Fatalf("%v: %s at %s: blocked %v by %v, oracle: %v by %v", c, r.Name, at.Sub(noon), broken, ids, want, oracleConflicts(r, c.bookings, at))
				}
			}
		}
	})
}

func sameSet(a, b []uuid.UUID) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(id uuid.UUID) bool { return !slices.Contains(b, id) })
}

// TestFreeTimes_Oracle tries every step on the way to the found free time.
func TestFreeTimes_Oracle(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := scopedCalendars(grain, 1).Draw(t, "calendar")
		step := rapid.SampledFrom([]time.Duration{grain, time.Second, 5 * time.Second}).Draw(t, "step")
		asked := moments(grain).Draw(t, "asked")
		up := asked.Add(step - 1).Truncate(step)
		for !oracleFree(c.policy, c.bookings, up) {
			up = up.Add(step)
		}
		if next, ok := c.policy.Next(quota.NewTimeline(c.bookings), asked, step); !ok || !next.Equal(up) {
			t.Fatalf("%v: next after %s by %s is %s (%v), want %s", c, asked.Sub(noon), step, next.Sub(noon), ok, up.Sub(noon))
		}
		down := asked.Truncate(step)
		for !oracleFree(c.policy, c.bookings, down) {
			down = down.Add(-step)
		}
		if previous, ok := c.policy.Previous(quota.NewTimeline(c.bookings), asked, step); !ok || !previous.Equal(down) {
			t.Fatalf("%v: previous before %s by %s is %s (%v), want %s", c, asked.Sub(noon), step, previous.Sub(noon), ok, down.Sub(noon))
		}
	})
}

// TestFreeTimes_AnyStep checks that free times are exact: the grain before is taken, or is the requested time.
func TestFreeTimes_AnyStep(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := scopedCalendars(grain, 1).Draw(t, "calendar")
		asked := moments(grain).Draw(t, "asked")
		onGrain, _ := c.policy.Next(quota.NewTimeline(c.bookings), asked, grain)
		if next, ok := c.policy.Next(quota.NewTimeline(c.bookings), asked, 0); !ok || !next.Equal(onGrain) {
			t.Fatalf("%v: next after %s is %s (%v), want %s", c, asked.Sub(noon), next.Sub(noon), ok, onGrain.Sub(noon))
		}
		onGrain, _ = c.policy.Previous(quota.NewTimeline(c.bookings), asked, grain)
		// A period blocks its first instant too: the last one before it is on no grain.
		previous, ok := c.policy.Previous(quota.NewTimeline(c.bookings), asked, 0)
		if !ok || !previous.Equal(onGrain) && (!previous.Equal(onGrain.Add(grain-1)) || !periodic(c.policy)) {
			t.Fatalf("%v: previous before %s is %s (%v), want %s", c, asked.Sub(noon), previous.Sub(noon), ok, onGrain.Sub(noon))
		}
	})
}

func periodic(p quota.Policy) bool {
	return slices.ContainsFunc(p, func(r quota.Rule) bool { return r.Periods != nil })
}

func TestUsage_Oracle(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := scopedCalendars(grain, 0).Draw(t, "calendar")
		at := moments(grain).Draw(t, "at")
		var want []quota.Usage
		for _, r := range c.policy {
			used := oracleUsed(r, c.bookings, at)
			remaining, n := max(0, r.Limit-r.Reserved-used), len(want)
			switch {
			case r.Quiet:
			case r.Reserved > 0:
				want[n-1].Remaining = min(want[n-1].Remaining, remaining)
			default:
				want = append(want, quota.Usage{Rule: r, Used: used, Remaining: remaining})
			}
		}
		usage := c.policy.Usage(quota.NewTimeline(c.bookings), at)
		if !slices.Equal(usage, want) {
			t.Fatalf("%v at %s: %+v, want %+v", c, at.Sub(noon), usage, want)
		}
		none := slices.ContainsFunc(usage, func(u quota.Usage) bool { return u.Remaining == 0 })
		if broken := slices.ContainsFunc(c.policy, func(r quota.Rule) bool { return !r.Quiet && oracleBroken(r, c.bookings, at) }); none != broken {
			t.Fatalf("%v at %s: %+v", c, at.Sub(noon), usage)
		}
	})
}

func TestTimeline_Insert(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var bookings []quota.Booking
		times := rapid.SliceOfN(moments(10*time.Second), 0, 20).Draw(t, "times")
		for i, at := range times {
			bookings = insert(bookings, booking(i, at))
		}
		if len(bookings) != len(times) || !slices.IsSortedFunc(bookings, earlierFirst) {
			t.Fatalf("%v", bookings)
		}
	})
}

// TestTimeline_Kinds books and gives back, and finds each booking with its kind.
func TestTimeline_Kinds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var line quota.Timeline
		held := map[uuid.UUID]quota.Booking{}
		for i := range rapid.IntRange(0, 30).Draw(t, "steps") {
			if all := line.Bookings(); len(all) > 0 && rapid.IntRange(0, 2).Draw(t, "removes") == 0 {
				b := rapid.SampledFrom(all).Draw(t, "booking")
				line = line.Remove(b)
				delete(held, b.ID)
				continue
			}
			b := booking(i, moments(10*time.Second).Draw(t, "at"))
			b.Kind = kinds().Draw(t, "kind")
			line = line.Insert(b)
			held[b.ID] = b
		}
		all := line.Bookings()
		if len(all) != len(held) || slices.ContainsFunc(all, func(b quota.Booking) bool { return held[b.ID].Kind != b.Kind || !held[b.ID].At.Equal(b.At) }) {
			t.Fatalf("%v, want %v", all, held)
		}
	})
}

// earlierFirst orders by time; equals in the order in which they were inserted.
func earlierFirst(a, b quota.Booking) int {
	if c := a.At.Compare(b.At); c != 0 {
		return c
	}
	return slices.Compare(a.ID[:], b.ID[:])
}
