package booking_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/policy/policytest"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/testenv"
)

// TestHistory_IllegalBookings books pushes that the oracle allows and some that it forbids, while the policy changes.
// The record reveals exactly the illegal ones, unless a canceled push was in their way.
func TestHistory_IllegalBookings(t *testing.T) {
	t.Parallel()
	const pause = 10 * time.Minute // long enough that the policy in force is known
	seen := map[string]int{}
	check := func(t *rapid.T) {
		s := &policytest.Scenario{World: policytest.Worlds().Draw(t, "world")}
		s.Person = s.People().Draw(t, "person")
		var (
			history  booking.History
			held     []booking.Checked
			illegal  []uuid.UUID
			now      = s.Begin.Add(-policytest.Around)
			canceled bool
		)
		change := func() {
			doc := s.Documents(1).Draw(t, "document")
			if terms, err := doc.Compile(policytest.Channels); err == nil {
				s.Doc = doc
				history.Versions = append(history.Versions, booking.Version{At: now, Terms: terms})
			}
		}
		change()
		if history.Versions == nil {
			t.Skip("always quiet")
		}
		for n := range rapid.IntRange(1, 25).Draw(t, "steps") {
			now = now.Add(pause)
			switch rapid.IntRange(0, 7).Draw(t, "step") {
			case 0:
				change()
			case 1:
				if len(held) > 0 {
					i := rapid.IntRange(0, len(held)-1).Draw(t, "canceled")
					gone := held[i].ID
					held = slices.Delete(held, i, i+1)
					s.Bookings = slices.DeleteFunc(slices.Clone(s.Bookings), func(b quota.Booking) bool { return b.ID == gone })
					illegal = slices.DeleteFunc(illegal, func(id uuid.UUID) bool { return id == gone })
					canceled = true
				}
			default:
				s.Kind = policytest.Kinds().Draw(t, "kind")
				b := quota.Booking{ID: uuid.UUID{15: byte(n + 1)}, At: s.Moments().Draw(t, "at"), Kind: s.Kind}
				if !s.Free(b.At) {
					if rapid.IntRange(0, 2).Draw(t, "refused") > 0 {
						continue
					}
					illegal = append(illegal, b.ID)
				}
				s.Bookings = append(slices.Clone(s.Bookings), b)
				held = append(held, booking.Checked{Booking: b, Since: now, Until: now, Check: true})
			}
		}
		var found []uuid.UUID
		for _, b := range history.IllegalBookings(s.Person, time.Time{}, slices.Clone(held)) {
			found = append(found, b.ID)
		}
		slices.SortFunc(illegal, func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) })
		slices.SortFunc(found, func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) })
		for _, id := range found {
			if !slices.Contains(illegal, id) {
				t.Fatalf("%v: %s was legal", s, id)
			}
		}
		if !canceled && !slices.Equal(found, illegal) {
			t.Fatalf("%v: found %v, want %v", s, found, illegal)
		}
		if seen["illegal"] += len(illegal); len(history.Versions) > 1 {
			seen["policies"]++
		}
		seen["legal"] += len(held) - len(illegal)
	}
	enough := func() bool { return min(seen["legal"], seen["illegal"], seen["policies"]) >= 20 }
	testenv.Enough(enough, func() { rapid.Check(t, check) })
	t.Logf("%v", seen)
	for _, what := range []string{"legal", "illegal", "policies"} {
		if seen[what] < 20 {
			t.Errorf("%s: only %d", what, seen[what])
		}
	}
}

// TestHistory_IllegalBookings_Open checks that a booking is legal if the policy in force or the order of bookings is
// uncertain.
// which booking came first.
func TestHistory_IllegalBookings_Open(t *testing.T) {
	t.Parallel()
	one, two := quota.Policy{{Name: "hour", Limit: 1, Window: time.Hour}}, quota.Policy{{Name: "hour", Limit: 2, Window: time.Hour}}
	h := booking.History{File: two, Versions: []booking.Version{{At: noon, Terms: one}}}
	at := func(n int, since, until time.Duration) booking.Checked {
		b := quota.Booking{ID: uuid.UUID{15: byte(n)}, At: noon.Add(24*time.Hour + time.Duration(n)*time.Minute)}
		return booking.Checked{Booking: b, Since: noon.Add(since), Until: noon.Add(until), Check: true}
	}
	const m = time.Minute
	for name, row := range map[string]struct {
		held      []booking.Checked
		described time.Time
		cut       bool
		want      int
	}{
		"before the policy":                   {held: []booking.Checked{at(1, -9*m, -9*m), at(2, -2*m, -2*m)}},
		"behind it":                           {held: []booking.Checked{at(1, -9*m, -9*m), at(2, 2*m, 2*m)}, want: 1},
		"about when it came":                  {held: []booking.Checked{at(1, -9*m, -9*m), at(2, m-1, m-1)}},
		"before or behind it":                 {held: []booking.Checked{at(1, -9*m, -9*m), at(2, -2*m, 2*m)}},
		"each may have been first":            {held: []booking.Checked{at(1, 2*m, 9*m), at(2, 3*m, 4*m)}},
		"of one transaction":                  {held: []booking.Checked{at(1, 2*m, 2*m), at(2, 2*m, 2*m)}, want: 1},
		"the recipient was described since":   {held: []booking.Checked{at(1, -9*m, -9*m), at(2, 2*m, 2*m)}, described: noon.Add(3 * m)},
		"the recipient was described before":  {held: []booking.Checked{at(1, -9*m, -9*m), at(2, 2*m, 2*m)}, described: noon, want: 1},
		"older policies are not known":        {held: []booking.Checked{at(1, -9*m, -9*m), at(2, -8*m, -8*m), at(3, -7*m, -7*m)}, cut: true},
		"under the file's policy":             {held: []booking.Checked{at(1, -9*m, -9*m), at(2, -8*m, -8*m), at(3, -7*m, -7*m)}, want: 1},
		"it is not checked, and still counts": {held: []booking.Checked{func() booking.Checked { j := at(1, 2*m, 2*m); j.Check = false; return j }(), at(2, 4*m, 4*m)}, want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			h := h
			h.Cut = row.cut
			if found := h.IllegalBookings(quota.Person{}, row.described, row.held); len(found) != row.want {
				t.Errorf("found %+v, want %d", found, row.want)
			}
		})
	}
}
