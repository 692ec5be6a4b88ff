package quota_test

import (
	"slices"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/quota"
)

// at reads a time of day: on the day of noon, or on the one before or after if it is led by − or +.
func at(t testing.TB, clock string) time.Time {
	t.Helper()
	day := 0
	switch clock[0] {
	case '-':
		day, clock = -1, clock[1:]
	case '+':
		day, clock = 1, clock[1:]
	}
	if len(clock) == len("15:04") {
		clock += ":00"
	}
	c, err := time.Parse(time.TimeOnly, clock)
	if err != nil {
		t.Fatal(err)
	}
	return time.Date(2026, 12, 1+day, c.Hour(), c.Minute(), c.Second(), c.Nanosecond(), time.UTC)
}

func booked(t testing.TB, clocks ...string) []quota.Booking {
	t.Helper()
	var bookings []quota.Booking
	for i, c := range clocks {
		bookings = insert(bookings, booking(i, at(t, c)))
	}
	return bookings
}

func per(n int, window time.Duration) quota.Policy {
	return quota.Policy{{Name: "rule", Limit: n, Window: window}}
}

// TestPolicy_Decisions covers the rules of the design, one time each.
func TestPolicy_Decisions(t *testing.T) {
	three := quota.Policy{{Name: "minute", Limit: 1, Window: time.Minute}, {Name: "hour", Limit: 5, Window: time.Hour}, {Name: "day", Limit: 10, Window: 24 * time.Hour}}
	for _, row := range []struct {
		name   string
		policy quota.Policy
		booked []string
		asked  string
		broken []string // the rules that forbid it
	}{
		{"nothing is booked", three, nil, "10:00", nil},
		{"the same time", per(1, time.Minute), []string{"10:00"}, "10:00", []string{"rule"}},
		{"exactly a window later", per(1, time.Minute), []string{"10:00"}, "10:01", nil},
		{"exactly a window earlier", per(1, time.Minute), []string{"10:00"}, "09:59", nil},
		{"a second less, later", per(1, time.Minute), []string{"10:00"}, "10:00:59", []string{"rule"}},
		{"a second less, earlier", per(1, time.Minute), []string{"10:00"}, "09:59:01", []string{"rule"}},
		{"between two, exactly a window from both", per(1, time.Minute), []string{"10:00", "10:02"}, "10:01", nil},

		// Counting only (t−W, t] ignores what is booked later.
		{"a later booking counts", per(1, time.Hour), []string{"10:30"}, "10:00", []string{"rule"}},
		{"later bookings count", per(2, time.Hour), []string{"10:10", "10:50"}, "10:00", []string{"rule"}},
		{"one earlier and one later", per(2, time.Hour), []string{"09:40", "10:20"}, "10:00", []string{"rule"}},
		// Counting all of (t−W, t+W) refuses what is legal.
		{"neighbours too far apart", per(2, time.Hour), []string{"10:00", "11:30"}, "10:45", nil},
		{"neighbours exactly a window apart", per(2, time.Hour), []string{"10:00", "11:00"}, "10:30", nil},
		{"neighbours a second less apart", per(2, time.Hour), []string{"10:00", "10:59:59"}, "10:30", []string{"rule"}},

		{"several at one time", per(3, time.Minute), []string{"10:00", "10:00"}, "10:00", nil},
		{"too many at one time", per(3, time.Minute), []string{"10:00", "10:00", "10:00"}, "10:00", []string{"rule"}},
		{"too many at one time, from a window later", per(3, time.Minute), []string{"10:00", "10:00", "10:00"}, "10:01", nil},

		{"limit 0 blocks", per(0, time.Minute), nil, "10:00", []string{"rule"}},
		{"no rule does not limit", quota.Policy{}, []string{"10:00", "10:00", "10:00"}, "10:00", nil},
		{"days do not begin at midnight", per(1, time.Minute), []string{"-23:59:30"}, "00:00:10", []string{"rule"}},
		{"the day is any 24 hours", per(1, 24*time.Hour), []string{"-15:00"}, "14:59:59", []string{"rule"}},
		{"the day is over", per(1, 24*time.Hour), []string{"-15:00"}, "15:00", nil},

		{"one rule of three", three, []string{"10:00"}, "10:00:30", []string{"minute"}},
		{"another rule of three", three, []string{"10:00", "10:05", "10:10", "10:15", "10:20"}, "10:30", []string{"hour"}},
		{"two rules of three", three, []string{"10:00", "10:05", "10:10", "10:15", "10:20"}, "10:20:30", []string{"minute", "hour"}},
		{"a rule of limit 0 among others", append(per(0, time.Second), three...), []string{"10:00"}, "12:00", []string{"rule"}},

		// The limit was 3 when these were booked.
		{"an old violation blocks its middle", per(2, time.Hour), []string{"10:00", "10:10", "10:20"}, "10:15", []string{"rule"}},
		{"an old violation blocks up to its last run's end", per(2, time.Hour), []string{"10:00", "10:10", "10:20"}, "11:09:59", []string{"rule"}},
		{"an old violation blocks no more behind it", per(2, time.Hour), []string{"10:00", "10:10", "10:20"}, "11:10", nil},
		{"an old violation blocks no more before it", per(2, time.Hour), []string{"10:00", "10:10", "10:20"}, "09:10", nil},
		{"an old violation near by, but not in the window", per(2, time.Hour), []string{"10:00", "10:00", "10:00", "11:10"}, "11:30", nil},

		{"a window of parts of a second", per(1, 300*time.Millisecond), []string{"10:00:00.5"}, "10:00:00.79", []string{"rule"}},
		{"a window of parts of a second, over", per(1, 300*time.Millisecond), []string{"10:00:00.5"}, "10:00:00.8", nil},
		{"whole seconds never meet in it", per(1, 300*time.Millisecond), []string{"10:00:00", "10:00:02"}, "10:00:01", nil},
		{"whole seconds meet only in their own", per(1, 300*time.Millisecond), []string{"10:00:01"}, "10:00:01", []string{"rule"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			violations := row.policy.Violations(quota.NewTimeline(booked(t, row.booked...)), at(t, row.asked))
			var broken []string
			for _, v := range violations {
				broken = append(broken, v.Rule.Name)
			}
			if !slices.Equal(broken, row.broken) {
				t.Errorf("breaks %v, want %v: %+v", broken, row.broken, violations)
			}
			if row.policy.Reach() == time.Hour && len(row.broken) > 0 && len(violations[0].Conflicts) < row.policy[0].Limit {
				t.Errorf("%d bookings do not fill %d places", len(violations[0].Conflicts), row.policy[0].Limit)
			}
		})
	}
}

func TestPolicy_LimitZero(t *testing.T) {
	p, bookings := per(0, time.Minute), booked(t, "10:00")
	if v := p.Violations(quota.NewTimeline(bookings), at(t, "10:00")); len(v) != 1 || len(v[0].Conflicts) != 0 {
		t.Errorf("violations %+v", v)
	}
	if next, ok := p.Next(quota.NewTimeline(bookings), noon, time.Second); ok {
		t.Errorf("next %s", next)
	}
	if previous, ok := p.Previous(quota.NewTimeline(bookings), noon, time.Second); ok {
		t.Errorf("previous %s", previous)
	}
	d, complete := p.Decide(quota.View{Timeline: quota.NewTimeline(bookings)}, noon, noon.Add(-time.Hour))
	if d.Allowed() || !d.Next.IsZero() || !d.Previous.IsZero() || !complete {
		t.Errorf("decision %+v, complete %v", d, complete)
	}
}

func TestPolicy_Reach(t *testing.T) {
	p := quota.Policy{{Limit: 1, Window: time.Minute}, {Limit: 1, Window: time.Hour}, {Limit: 0, Window: time.Second}}
	if got := p.Reach(); got != time.Hour {
		t.Errorf("reach %s", got)
	}
	if got := (quota.Policy{}).Reach(); got != 0 {
		t.Errorf("reach of no rule %s", got)
	}
}
