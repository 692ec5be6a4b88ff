package booking_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
)

// TestDecider_Caps: bert has a push on the day of noon. The quota only blocks the time of that push.
func TestDecider_Caps(t *testing.T) {
	type draft struct {
		recipient  string
		in, latest time.Duration
	}
	const (
		booked, refused, over, uncounted = booking.Booked, booking.NoPlace, booking.OverCap, booking.Uncounted
		day                              = 24 * hour
	)
	today := booking.DayOf(noon)
	usage := func(pending, perDay, usedPending int, days map[booking.Day]int) *booking.CapUsage {
		return &booking.CapUsage{Caps: push.Caps{PendingPushes: pending, RecipientsPerDay: perDay}, Pending: usedPending, Days: days}
	}
	for _, row := range []struct {
		name    string
		usage   *booking.CapUsage
		atomic  bool
		drafts  []draft
		want    []booking.Outcome
		news    []bool // which of them are the only push of a recipient on a day
		capped  booking.Capped
		granted int
	}{
		{name: "no caps", usage: nil, drafts: []draft{{"anna", 0, 0}}, want: []booking.Outcome{booked}, granted: 1},
		{name: "caps of 0 are none", usage: usage(0, 0, 99, nil), drafts: []draft{{"anna", 0, 0}}, want: []booking.Outcome{booked}, granted: 1},

		{name: "the last room for pending pushes", usage: usage(10, 0, 8, nil), drafts: []draft{{"anna", 0, 0}, {"anna", hour, 0}, {"anna", 2 * hour, 0}},
			want: []booking.Outcome{booked, booked, over}, granted: 2, capped: booking.Capped{Cap: booking.PendingPushes, Limit: 10, Used: 10}},
		{name: "a refused push uses no room", usage: usage(10, 0, 9, nil), drafts: []draft{{"bert", hour, 0}, {"anna", 0, 0}},
			want: []booking.Outcome{refused, booked}, granted: 1},
		{name: "the rules come before the caps", usage: usage(10, 0, 10, nil), drafts: []draft{{"bert", hour, 0}}, want: []booking.Outcome{refused}},
		{name: "an atomic order over its cap books nothing", usage: usage(10, 0, 9, nil), atomic: true, drafts: []draft{{"anna", 0, 0}, {"anna", hour, 0}},
			want: []booking.Outcome{booked, over}, capped: booking.Capped{Cap: booking.PendingPushes, Limit: 10, Used: 10}},

		{name: "the last recipient of the day", usage: usage(0, 5, 0, map[booking.Day]int{today: 4}), drafts: []draft{{"anna", 0, 0}, {"carl", 0, 0}},
			want: []booking.Outcome{booked, over}, news: []bool{true, false}, granted: 1,
			capped: booking.Capped{Cap: booking.RecipientsPerDay, Limit: 5, Used: 5, Day: today}},
		{name: "a recipient of a full day may get more", usage: usage(0, 5, 0, map[booking.Day]int{today: 5}), drafts: []draft{{"bert", 0, 0}, {"bert", 2 * hour, 0}},
			want: []booking.Outcome{booked, booked}, news: []bool{false, false}, granted: 2},
		{name: "a second push of a new recipient uses no room", usage: usage(0, 5, 0, map[booking.Day]int{today: 4}), drafts: []draft{{"anna", 0, 0}, {"anna", hour, 0}},
			want: []booking.Outcome{booked, booked}, news: []bool{true, false}, granted: 2},
		{name: "each day has room of its own", usage: usage(0, 5, 0, map[booking.Day]int{today: 5, today + 1: 4}), drafts: []draft{{"bert", day, 0}, {"carl", 0, 0}},
			want: []booking.Outcome{booked, over}, news: []bool{true, false}, granted: 1,
			capped: booking.Capped{Cap: booking.RecipientsPerDay, Limit: 5, Used: 5, Day: today}},

		// A conflict moves bert's push from the last second of the day to the next day.
		{name: "moved to a day with room", usage: usage(0, 5, 0, map[booking.Day]int{today: 5, today + 1: 0}),
			drafts: []draft{{"bert", 12*hour - time.Second, 0}, {"bert", 12*hour - time.Second, day}},
			want:   []booking.Outcome{booked, booked}, news: []bool{false, true}, granted: 2},
		{name: "moved to a full day", usage: usage(0, 5, 0, map[booking.Day]int{today: 5, today + 1: 5}),
			drafts: []draft{{"bert", 12*hour - time.Second, 0}, {"bert", 12*hour - time.Second, day}},
			want:   []booking.Outcome{booked, over}, news: []bool{false, false}, granted: 1,
			capped: booking.Capped{Cap: booking.RecipientsPerDay, Limit: 5, Used: 5, Day: today + 1}},
		{name: "moved to a day that was not counted: nothing is booked", usage: usage(0, 5, 0, map[booking.Day]int{today: 0}),
			drafts: []draft{{"bert", 12*hour - time.Second, 0}, {"bert", 12*hour - time.Second, day}},
			want:   []booking.Outcome{booked, uncounted}, news: []bool{false, false},
			capped: booking.Capped{Cap: booking.RecipientsPerDay, Limit: 5, Day: today + 1}},
	} {
		t.Run(row.name, func(t *testing.T) {
			b := setup(t)
			b.hold("bert", hour)
			o := booking.Order{Policy: onePerMinute, Atomic: row.atomic, CapUsage: row.usage}
			for _, d := range row.drafts {
				draft := booking.Draft{Push: b.push(d.recipient, d.in)}
				if d.latest > 0 {
					draft.Latest = noon.Add(d.latest)
				}
				o.Drafts = append(o.Drafts, draft)
			}
			var days map[booking.Day]int
			if row.usage != nil {
				days = maps.Clone(row.usage.Days)
			}
			decider := b.decider()
			decisions := decider.Book(o)
			if got := outcomes(decisions); !cmp.Equal(got, row.want) || len(decider.Granted) != row.granted {
				t.Errorf("outcomes %v with %d grants, want %v with %d", got, len(decider.Granted), row.want, row.granted)
			}
			for i, d := range decisions {
				if row.news != nil && d.NewRecipientOfDay != row.news[i] {
					t.Errorf("draft %d: new recipient of the day %v", i, d.NewRecipientOfDay)
				}
				if d.Capped != nil && *d.Capped != row.capped {
					t.Errorf("draft %d: %+v, want %+v", i, *d.Capped, row.capped)
				}
			}
			if row.usage != nil && !maps.Equal(days, row.usage.Days) {
				t.Errorf("the caller's counts were changed: %v", row.usage.Days)
			}
		})
	}
}

// TestDay checks that days are UTC days and begin at midnight, also before 1970.
func TestDay(t *testing.T) {
	for _, at := range []time.Time{noon, time.Unix(0, 0), time.Unix(-1, 0), time.Unix(-86400, 0), time.Date(1900, 2, 28, 23, 59, 59, 0, time.UTC)} {
		begin := booking.DayOf(at).Begin()
		if at.Before(begin) || !at.Before(begin.Add(24*hour)) || begin.Location() != time.UTC || begin != at.UTC().Truncate(24*hour) {
			t.Errorf("%s lies on the day that begins at %s", at.UTC(), begin)
		}
	}
}

// TestCapped_Error checks that the text contains the limit, the usage and the remedy.
func TestCapped_Error(t *testing.T) {
	for want, c := range map[string]booking.Capped{
		"limit 10, used 10;":         {Cap: booking.PendingPushes, Limit: 10, Used: 10},
		"limit 10, used 11 or more;": {Cap: booking.PendingPushes, Limit: 10, Used: 11},
		"on 2026-12-01, UTC":         {Cap: booking.RecipientsPerDay, Limit: 10, Used: 10, Day: booking.DayOf(noon)},
	} {
		if got := c.Error(); !strings.Contains(got, want) || !strings.Contains(got, c.Cap) {
			t.Errorf("%q does not contain %q", got, want)
		}
	}
}

// TestOrder_Days checks that a fixed push counts for its day, and a movable one for every day that the order names,
// including days that only it names.
func TestOrder_Days(t *testing.T) {
	b, today := setup(t), booking.DayOf(noon)
	fixed := func(in time.Duration) booking.Draft { return booking.Draft{Push: b.push("anna", in)} }
	movable := func(in time.Duration) booking.Draft {
		return booking.Draft{Push: b.push("anna", in), Latest: noon.Add(10 * 24 * hour)}
	}
	for name, row := range map[string]struct {
		drafts []booking.Draft
		want   map[booking.Day]int
	}{
		"two fixed ones of a day": {[]booking.Draft{fixed(0), fixed(hour)}, map[booking.Day]int{today: 2}},
		"one of each day":         {[]booking.Draft{fixed(0), fixed(24 * hour)}, map[booking.Day]int{today: 1, today + 1: 1}},
		"a movable one":           {[]booking.Draft{movable(0)}, map[booking.Day]int{today: 1}},
		"movable and fixed":       {[]booking.Draft{movable(24 * hour), fixed(0), fixed(0)}, map[booking.Day]int{today: 3, today + 1: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (booking.Order{Drafts: row.drafts}).Days(); !maps.Equal(got, row.want) {
				t.Errorf("%v, want %v", got, row.want)
			}
		})
	}
}
