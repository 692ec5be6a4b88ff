package zone_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sendquota/sendquota/internal/zone"
)

// The oracle knows no transitions. It reads the clock of a zone every minute, and records it.

// odd are zones with unusual clocks.
var odd = []string{
	"Australia/Lord_Howe", // summer is half an hour
	"Pacific/Apia",        // 2011-12-30 is missing
	"Asia/Kathmandu",      // 45 minutes off the full hour
	"America/St_Johns",    // a minute past midnight, until 2011
	"America/Sao_Paulo",   // at midnight: a day begins at 01:00
	"America/Havana", "Asia/Beirut", "Africa/Cairo", "America/Santiago", "Asia/Tehran",
	"Antarctica/Troll", "Antarctica/Casey", "Africa/Casablanca", "Europe/Dublin", "Asia/Pyongyang", "Pacific/Kiritimati",
}

// zones draws odd zones as often as any others.
func zones(t testing.TB) *rapid.Generator[*time.Location] {
	load := func(name string) *time.Location {
		loaded, err := zone.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		return loaded
	}
	return rapid.Map(rapid.OneOf(rapid.SampledFrom(odd), rapid.SampledFrom(allNames(t))), load)
}

// instants draws minutes of 1990 to 2040, most of them within two days of a transition of the zone.
func instants(in *time.Location) *rapid.Generator[time.Time] {
	return rapid.Custom(func(t *rapid.T) time.Time {
		first := time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC)
		at := first.Add(time.Duration(rapid.IntRange(0, 50*365*24*60).Draw(t, "minute")) * time.Minute)
		if from, until := at.In(in).ZoneBounds(); rapid.IntRange(0, 3).Draw(t, "near") > 0 {
			around := time.Duration(rapid.IntRange(-2*24*60, 2*24*60).Draw(t, "around")) * time.Minute
			if from.After(first) {
				return from.Add(around).Truncate(time.Minute)
			}
			if !until.IsZero() {
				return until.Add(around).Truncate(time.Minute)
			}
		}
		return at
	})
}

// show returns the wall clock time.
func show(t time.Time, in *time.Location) time.Time {
	_, ahead := t.In(in).Zone()
	return t.Add(time.Duration(ahead) * time.Second).UTC()
}

// check draws until what matters has come, and at least once.
func check(t *testing.T, came func() bool, property func(*rapid.T)) {
	t.Helper()
	for range 50 {
		if rapid.Check(t, property); came() {
			return
		}
	}
	t.Error("what matters never came: nothing was tested")
}

func TestInstant_Oracle(t *testing.T) {
	t.Parallel()
	gaps, twice := 0, 0
	check(t, func() bool { return gaps > 0 && twice > 0 }, func(rt *rapid.T) {
		in := zones(t).Draw(rt, "zone")
		local := show(instants(in).Draw(rt, "near"), in).Add(time.Duration(rapid.IntRange(-90, 90).Draw(rt, "minutes")) * time.Minute)
		want := local.Add(-36 * time.Hour)
		for show(want, in).Before(local) {
			want = want.Add(time.Minute)
		}
		got := zone.Instant(local, in)
		if !got.Equal(want) || got.Location() != in {
			rt.Fatalf("%s in %s is %s, want %s", local, in, got, want.In(in))
		}
		if !show(got, in).Equal(local) {
			gaps++
		}
		all := []time.Time{want}
		for later := got.Add(time.Minute); later.Before(got.Add(30 * time.Hour)); later = later.Add(time.Minute) {
			if show(later, in).Equal(local) {
				all = append(all, later)
				twice++
			}
		}
		if got := zone.Instants(local, in); !slices.EqualFunc(got, all, time.Time.Equal) {
			rt.Fatalf("%s in %s is %v, want %v", local, in, got, all)
		}
	})
}

// buckets returns the minutes of [from, until) where a bucket begins.
func buckets(unit zone.Unit, weekStart time.Weekday, in *time.Location, from, until time.Time) []time.Time {
	var begins []time.Time
	before := show(from, in)
	latest := before // what the clock has shown: a day that is over does not begin again
	for at := from.Add(time.Minute); at.Before(until); at = at.Add(time.Minute) {
		now := show(at, in)
		moved := now.Sub(before) != time.Minute
		begin := false
		switch unit {
		case zone.Hour:
			begin = moved || now.Hour() != before.Hour()
		case zone.Day:
			begin = now.After(latest) && now.YearDay() != latest.YearDay()
		case zone.Week:
			begin = now.After(latest) && weekNumber(now, weekStart) != weekNumber(latest, weekStart)
		case zone.Month:
			begin = now.After(latest) && now.Month() != latest.Month()
		}
		if begin {
			begins = append(begins, at)
		}
		if before = now; now.After(latest) {
			latest = now
		}
	}
	return begins
}

// weekNumber counts the weeks since one that began on 1989-01-01, a Sunday, or on one of the next six days.
func weekNumber(local time.Time, start time.Weekday) int {
	return int(local.Sub(time.Date(1989, 1, 1+int(start), 0, 0, 0, 0, time.UTC)).Hours()) / (7 * 24)
}

func TestCalendar_Oracle(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name string
		unit zone.Unit
		wide time.Duration
	}{{"hour", zone.Hour, 3 * time.Hour}, {"day", zone.Day, 60 * time.Hour}, {"week", zone.Week, 10 * 24 * time.Hour}, {"month", zone.Month, 35 * 24 * time.Hour}} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			odd := 0
			check(t, func() bool { return odd > 0 }, func(rt *rapid.T) {
				in, weekStart := zones(t).Draw(rt, "zone"), time.Weekday(rapid.IntRange(0, 6).Draw(rt, "week start"))
				at := instants(in).Draw(rt, "at")
				c := zone.Calendar{Zone: in, Unit: row.unit, WeekStart: weekStart}
				from, until, inside := c.Around(at)
				begins := buckets(row.unit, weekStart, in, at.Add(-row.wide), at.Add(row.wide))
				next := slices.IndexFunc(begins, at.Before)
				if next < 1 || !inside || !from.Equal(begins[next-1]) || !until.Equal(begins[next]) {
					rt.Fatalf("%s in %s, weeks from %s: [%s, %s) %v, want %v", at.In(in), in, weekStart, from.In(in), until.In(in), inside, begins)
				}
				if until.Sub(from) > c.Longest() {
					rt.Fatalf("%s: [%s, %s) is longer than %s", in, from, until, c.Longest())
				}
				if until.Sub(from)%(24*time.Hour) != 0 {
					odd++
				}
			})
		})
	}
}

// quiet is the oracle's answer about hours that are written as a user writes them.
func quiet(at time.Time, in *time.Location, from, until string, days zone.Days) bool {
	today := show(at, in)
	clock, yesterday := today.Format("15:04"), today.AddDate(0, 0, -1)
	begins := func(day time.Time) bool { return days.Add(day.Weekday()) == days }
	switch {
	case from < until:
		return begins(today) && from <= clock && clock < until
	case clock >= from:
		return begins(today)
	}
	return clock < until && begins(yesterday)
}

func TestHours_Oracle(t *testing.T) {
	t.Parallel()
	answers := map[bool]int{}
	clock := rapid.Map(rapid.IntRange(0, 24*4-1), func(quarter int) time.Duration { return time.Duration(quarter) * 15 * time.Minute })
	text := func(d time.Duration) string { return fmt.Sprintf("%02d:%02d", d/time.Hour, d%time.Hour/time.Minute) }
	check(t, func() bool { return answers[true] >= 20 && answers[false] >= 20 }, func(rt *rapid.T) {
		in := zones(t).Draw(rt, "zone")
		h := zone.Hours{Zone: in, From: clock.Draw(rt, "from"), Until: rapid.OneOf(clock, rapid.Just(24*time.Hour)).Draw(rt, "until"), Days: zone.Days(rapid.IntRange(0, 127).Draw(rt, "days"))}
		at := instants(in).Draw(rt, "at")
		at = at.Add(time.Duration(rapid.IntRange(0, 59).Draw(rt, "second")) * time.Second)
		from, until, inside := h.Around(at)
		covered := func(at time.Time) bool { return quiet(at, in, text(h.From), text(h.Until), h.Days) }
		if from.After(at) || !at.Before(until) || inside != covered(at) {
			rt.Fatalf("%s in %s, %s to %s on %07b: [%s, %s) %v", at.In(in), in, text(h.From), text(h.Until), h.Days, from, until, inside)
		}
		const week = 7 * 24 * time.Hour
		for m := from; m.Before(until); m = m.Add(time.Minute) {
			if covered(m) != inside {
				rt.Fatalf("%s in %s, %s to %s on %07b: [%s, %s) %v, but not at %s", at.In(in), in, text(h.From), text(h.Until), h.Days, from, until, inside, m.In(in))
			}
		}
		if at.Sub(from) < week && covered(from.Add(-time.Minute)) == inside || until.Sub(at) < week && covered(until) == inside {
			rt.Fatalf("%s in %s, %s to %s on %07b: [%s, %s) %v ends too soon", at.In(in), in, text(h.From), text(h.Until), h.Days, from, until, inside)
		}
		answers[inside]++
	})
}
