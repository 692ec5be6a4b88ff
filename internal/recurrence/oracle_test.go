package recurrence_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sendquota/sendquota/internal/recurrence"
	"github.com/sendquota/sendquota/internal/zone"
)

// The oracle checks the clocks of a zone every minute of four days around a clock change, and every possible wall clock
// minute. It knows no bits and no transitions.

// fields are the matching numbers of each field of an expression. Nil is a *.
type fields struct{ minute, hour, dom, month, dow []int }

func (f fields) String() string {
	var texts []string
	for _, field := range [][]int{f.minute, f.hour, f.dom, f.month, f.dow} {
		text := "*"
		if field != nil {
			text = strings.Trim(strings.ReplaceAll(fmt.Sprint(field), " ", ","), "[]")
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, " ")
}

func (f fields) match(local time.Time) bool {
	has := func(field []int, n int) bool { return field == nil || slices.Contains(field, n) }
	dom, dow := has(f.dom, local.Day()), has(f.dow, int(local.Weekday()))
	day := dom && dow
	if f.dom != nil && f.dow != nil {
		day = dom || dow
	}
	return has(f.minute, local.Minute()) && has(f.hour, local.Hour()) && has(f.month, int(local.Month())) && day
}

func expressions(about time.Time) *rapid.Generator[fields] {
	some := func(numbers *rapid.Generator[int]) *rapid.Generator[[]int] {
		return rapid.OneOf(rapid.Just[[]int](nil), rapid.SliceOfNDistinct(numbers, 1, 3, rapid.ID[int]))
	}
	days := rapid.Map(rapid.IntRange(-3, 3), func(n int) int { return about.AddDate(0, 0, n).Day() })
	return rapid.Custom(func(t *rapid.T) fields { // December has every day, so that each of them happens
		return fields{
			minute: some(rapid.SampledFrom([]int{0, 1, 15, 29, 30, 31, 45, 59})).Draw(t, "minute"),
			hour:   some(rapid.SampledFrom([]int{0, 1, 2, 3, 4, 12, 23})).Draw(t, "hour"),
			dom:    some(days).Draw(t, "day of month"),
			month:  rapid.SampledFrom([][]int{nil, nil, {int(about.Month()), 12}}).Draw(t, "month"),
			dow:    some(rapid.IntRange(0, 6)).Draw(t, "weekday"),
		}
	})
}

var worlds = []struct{ zone, about string }{
	{"Europe/Berlin", "2026-03-29"}, {"Europe/Berlin", "2026-10-25"}, {"Australia/Lord_Howe", "2026-04-05"}, {"Australia/Lord_Howe", "2026-10-04"},
	{"Pacific/Apia", "2011-12-30"}, {"Asia/Kathmandu", "1986-01-01"}, {"America/St_Johns", "2010-11-07"}, {"America/St_Johns", "2010-03-14"},
	{"America/Havana", "2026-11-01"}, {"America/Sao_Paulo", "2018-11-04"}, {"Antarctica/Casey", "2010-03-05"}, {"UTC", "2026-10-25"},
}

func load(name string) *time.Location {
	loaded, err := zone.Load(name)
	if err != nil {
		panic(err)
	}
	return loaded
}

// occurrences returns the occurrences in (begin, end].
func occurrences(f fields, in *time.Location, begin, end time.Time) []time.Time {
	var shown []time.Time          // by the minute, from two days before the beginning
	again := map[time.Time][]int{} // by wall clock time: the minutes that show it
	first := begin.AddDate(0, 0, -2)
	for at := first; !at.After(end); at = at.Add(time.Minute) {
		_, ahead := at.In(in).Zone()
		local := at.Add(time.Duration(ahead) * time.Second)
		again[local] = append(again[local], len(shown))
		shown = append(shown, local)
	}
	var all []time.Time
	at := func(n int) time.Time { return first.Add(time.Duration(n) * time.Minute) }
	n := 0
	for local := shown[0]; local.Before(shown[0].Add(end.Sub(first) + 48*time.Hour)); local = local.Add(time.Minute) {
		for n < len(shown) && shown[n].Before(local) {
			n++
		}
		if n == len(shown) || !f.match(local) {
			continue
		}
		all = append(all, at(n))
		if f.hour == nil {
			for _, n := range again[local] {
				all = append(all, at(n))
			}
		}
	}
	slices.SortFunc(all, time.Time.Compare)
	all = slices.CompactFunc(all, time.Time.Equal)
	return slices.DeleteFunc(all, func(at time.Time) bool { return !at.After(begin) })
}

func TestExpression_Oracle(t *testing.T) {
	t.Parallel()
	found := 0
	compare := func(t *rapid.T) {
		w := rapid.SampledFrom(worlds).Draw(t, "world")
		about, err := time.Parse(time.DateOnly, w.about)
		if err != nil {
			t.Fatal(err)
		}
		f, in := expressions(about).Draw(t, "expression"), load(w.zone)
		s, err := recurrence.Parse(f.String(), in, about)
		if err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		begin := about.Add(time.Duration(rapid.IntRange(-36*60, 36*60).Draw(t, "begin")) * time.Minute)
		end := begin.Add(30 * time.Hour)
		want := occurrences(f, in, begin, end)
		got := s.Take(begin, len(want)+1)
		if n := len(got); n > 0 && got[n-1].After(end) {
			got = got[:n-1]
		}
		if !slices.EqualFunc(got, want, time.Time.Equal) {
			t.Fatalf("%s in %s after %s: %v, want %v", f, in, begin.In(in), got, want)
		}
		found += len(want)
	}
	for round := 0; found < 1000; round++ { // some expressions have no occurrence; short runs draw few
		if round == 20 {
			t.Fatalf("only %d occurrences: nothing was tested", found)
		}
		rapid.Check(t, compare)
	}
}
