package policy_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/sendquota/sendquota/internal/policy"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/zone"
)

// The oracle reads a document as the contract states it, and knows no runs, periods or intervals. It looks at the clocks
// of a zone every quarter of an hour, slides each window over every quarter, and counts. All times that the generators
// draw lie on quarters, as do all the times at which the zones here move their clocks.
const grain = 15 * time.Minute

// worlds are six days around a change of a zone's clocks.
var worlds = []struct{ zone, about string }{
	{"Europe/Berlin", "2026-03-29"}, // 23 hours
	{"Europe/Berlin", "2026-10-25"}, // 25 hours
	{"Australia/Lord_Howe", "2026-04-05"},
	{"Australia/Lord_Howe", "2026-10-04"},
	{"Pacific/Apia", "2011-12-30"}, // missing
	{"Asia/Kathmandu", "1986-01-01"},
	{"America/Sao_Paulo", "2018-11-04"}, // begins at 01:00
	{"America/Havana", "2026-11-01"},
}

// world is where and when a recipient lives.
type world struct {
	zone  *time.Location
	begin time.Time // of six days
}

const span = 6 * 24 * time.Hour

func worldsOf() *rapid.Generator[world] {
	return rapid.Custom(func(t *rapid.T) world {
		w := rapid.SampledFrom(worlds).Draw(t, "world")
		about, err := time.Parse(time.DateOnly, w.about)
		if err != nil {
			panic(err)
		}
		return world{load(w.zone), about.Add(-span / 2)}
	})
}

func load(name string) *time.Location {
	loaded, err := zone.Load(name)
	if err != nil {
		panic(err)
	}
	return loaded
}

func (w world) moments() *rapid.Generator[time.Time] {
	return rapid.Map(rapid.IntRange(0, int(span/grain)), func(n int) time.Time { return w.begin.Add(time.Duration(n) * grain) })
}

// around is how far the oracle sees on both sides of a world.
const around = 45 * 24 * time.Hour

// bucketNumbers says, of each quarter that the oracle sees, which bucket of a calendar it lies in.
func (w world) bucketNumbers(in *time.Location, per string, start time.Weekday) []int {
	show := func(t time.Time) time.Time {
		_, ahead := t.In(in).Zone()
		return t.Add(time.Duration(ahead) * time.Second)
	}
	before := show(w.begin.Add(-around))
	latest, number := before, 0 // a day that is over does not begin again
	numbers := []int{0}
	for at := w.begin.Add(grain - around); at.Before(w.begin.Add(span + around)); at = at.Add(grain) {
		now := show(at)
		next := false
		switch per {
		case "hour":
			next = now.Hour() != before.Hour() || now.Sub(before) != grain
		case "day":
			next = now.After(latest) && now.YearDay() != latest.YearDay()
		case "week":
			next = now.After(latest) && now.YearDay() != latest.YearDay() &&
				(now.Weekday() == start || now.Sub(latest) > 24*time.Hour && latest.AddDate(0, 0, 1).Weekday() == start)
		case "month":
			next = now.After(latest) && now.Month() != latest.Month()
		}
		if next {
			number++
		}
		if before = now; now.After(latest) {
			latest = now
		}
		numbers = append(numbers, number)
	}
	return numbers
}

// scenario is all that a decision depends on.
type scenario struct {
	world
	doc      policy.Document
	person   policy.Person
	bookings []quota.Booking
	kind     quota.Kind
	buckets  map[string][]int // by rule
}

func (s *scenario) zoneOf(name string) *time.Location {
	switch name {
	case "":
		return load(s.doc.DefaultZone)
	case policy.OfRecipient:
		if s.person.Zone == nil {
			return load(s.doc.DefaultZone)
		}
		return s.person.Zone
	}
	return load(name)
}

// windows calls do with the quarters of each window of a rule that t lies in, as numbers from the beginning of the world.
func (s *scenario) windows(r policy.Rule, t time.Time, do func(from, until int)) {
	at := int(t.Sub(s.begin) / grain)
	if r.Per == "" {
		length, _ := time.ParseDuration(r.Window)
		n := int(length / grain)
		for from := at - n + 1; from <= at; from++ {
			do(from, from+n)
		}
		return
	}
	numbers, ok := s.buckets[r.Name]
	if !ok {
		start := time.Monday
		if r.WeekStart == "sunday" {
			start = time.Sunday
		}
		numbers = s.bucketNumbers(s.zoneOf(r.Zone), r.Per, start)
		s.buckets[r.Name] = numbers
	}
	i := at + int(around/grain)
	from, until := i, i+1
	for ; from > 0 && numbers[from-1] == numbers[i]; from-- {
	}
	for ; until < len(numbers) && numbers[until] == numbers[i]; until++ {
	}
	do(from-int(around/grain), until-int(around/grain))
}

// covers reports whether a scope has a kind.
func covers(channels, categories []string, k quota.Kind) bool {
	return (channels == nil || slices.Contains(channels, k.Channel)) && (categories == nil || slices.Contains(categories, k.Category))
}

// used counts what a rule counts in [from, until), without a category.
func (s *scenario) used(r policy.Rule, from, until int, without *string) int {
	n := 0
	for _, b := range s.bookings {
		at := int(b.At.Sub(s.begin) / grain)
		counts := s.doc.Categories[b.Kind.Category].Counts
		if at >= from && at < until && covers(r.Channels, r.Categories, b.Kind) && (counts == nil || *counts) && (without == nil || *without != b.Kind.Category) {
			n++
		}
	}
	return n
}

func (s *scenario) limit(r policy.Rule) int {
	if own, ok := s.person.Limits[r.Name]; ok {
		return own
	}
	return *r.Limit
}

// remaining says how many more a rule allows at t, and how many it has counted.
func (s *scenario) remaining(r policy.Rule, t time.Time) (remaining, used int) {
	remaining = s.limit(r)
	s.windows(r, t, func(from, until int) {
		n := s.used(r, from, until, nil)
		used, remaining = max(used, n), min(remaining, s.limit(r)-n)
		for name, category := range s.doc.Categories {
			if kept := category.Reserve[r.Name]; kept > 0 && name != s.kind.Category {
				remaining = min(remaining, s.limit(r)-kept-s.used(r, from, until, &name))
			}
		}
	})
	return max(0, remaining), used
}

// quietAt reports whether quiet hours cover t.
func (s *scenario) quietAt(q policy.QuietHours, t time.Time) bool {
	today := t.In(s.zoneOf(q.Zone))
	clock, yesterday := today.Format("15:04"), time.Date(today.Year(), today.Month(), today.Day()-1, 12, 0, 0, 0, time.UTC)
	begins := func(day time.Time) bool {
		return q.Days == nil || slices.Contains(q.Days, strings.ToLower(day.Format("Mon")))
	}
	switch {
	case q.From < q.Until:
		return begins(today) && q.From <= clock && clock < q.Until
	case clock >= q.From:
		return begins(today)
	}
	return clock < q.Until && begins(yesterday)
}

// inTheWay names everything that forbids a push at t.
func (s *scenario) inTheWay(t time.Time, shadow bool) []string {
	var names []string
	if s.doc.Categories[s.kind.Category].Bypass {
		return nil
	}
	for _, r := range s.doc.Rules {
		if r.Shadow != shadow || !covers(r.Channels, r.Categories, s.kind) {
			continue
		}
		if remaining, _ := s.remaining(r, t); remaining == 0 {
			names = append(names, r.Name)
		}
	}
	for _, q := range s.doc.QuietHours {
		if !shadow && covers(q.Channels, q.Categories, s.kind) && s.quietAt(q, t) {
			names = append(names, q.Name)
		}
	}
	return names
}

func (s *scenario) String() string {
	text := fmt.Sprintf("%s, %+v to %v, booked", s.zone, s.doc, s.person)
	for _, b := range s.bookings {
		text += fmt.Sprintf(" %s%v", b.At.In(s.zone).Format("02T15:04-07"), b.Kind)
	}
	return text
}

var (
	channels   = []string{"sms", "email"}
	categories = []string{"news", "offers", "alerts"}
)

func someOf(names []string) *rapid.Generator[[]string] {
	return rapid.OneOf(rapid.Just[[]string](nil), rapid.SliceOfNDistinct(rapid.SampledFrom(names), 1, 2, rapid.ID[string]))
}

func kinds() *rapid.Generator[quota.Kind] {
	return rapid.Custom(func(t *rapid.T) quota.Kind {
		return quota.Kind{Channel: rapid.SampledFrom(channels).Draw(t, "channel"), Category: rapid.SampledFrom(append(categories, "")).Draw(t, "category")}
	})
}

func (w world) rules() *rapid.Generator[policy.Rule] {
	return rapid.Custom(func(t *rapid.T) policy.Rule {
		limit := rapid.IntRange(0, 4).Draw(t, "limit")
		r := policy.Rule{Limit: &limit, Shadow: rapid.IntRange(0, 5).Draw(t, "shadow") == 0}
		r.Channels, r.Categories = someOf(channels).Draw(t, "channels"), someOf(categories).Draw(t, "categories")
		if rapid.Bool().Draw(t, "rolling") {
			r.Window = (time.Duration(rapid.IntRange(1, 30).Draw(t, "window")) * grain).String()
			return r
		}
		r.Per = rapid.SampledFrom([]string{"hour", "day", "week", "month"}).Draw(t, "per")
		r.Zone = w.zones().Draw(t, "zone")
		if r.Per == "week" {
			r.WeekStart = rapid.SampledFrom([]string{"", "monday", "sunday"}).Draw(t, "week start")
		}
		return r
	})
}

func (w world) zones() *rapid.Generator[string] {
	return rapid.SampledFrom([]string{"", policy.OfRecipient, w.zone.String(), "Asia/Tokyo"})
}

func (w world) quietHours() *rapid.Generator[policy.QuietHours] {
	clock := rapid.Map(rapid.IntRange(0, 95), func(n int) string { return time.Time{}.Add(time.Duration(n) * grain).Format("15:04") })
	days := []string{"mon", "tue", "wed", "thu", "fri", "sat", "sun"}
	return rapid.Custom(func(t *rapid.T) policy.QuietHours {
		return policy.QuietHours{
			From: clock.Draw(t, "from"), Until: clock.Draw(t, "until"), Zone: w.zones().Draw(t, "zone"),
			Days:     rapid.OneOf(rapid.Just[[]string](nil), rapid.SliceOfNDistinct(rapid.SampledFrom(days), 1, 6, rapid.ID[string])).Draw(t, "days"),
			Channels: someOf(channels).Draw(t, "channels"), Categories: someOf(categories).Draw(t, "categories"),
			Action: rapid.SampledFrom([]string{"", "reject", "defer"}).Draw(t, "action"),
		}
	})
}

func (w world) documents() *rapid.Generator[policy.Document] {
	return rapid.Custom(func(t *rapid.T) policy.Document {
		d := policy.Document{
			Rules:       rapid.SliceOfN(w.rules(), 0, 4).Draw(t, "rules"),
			QuietHours:  rapid.SliceOfN(w.quietHours(), 0, 2).Draw(t, "quiet hours"),
			Categories:  map[string]policy.Category{},
			DefaultZone: rapid.SampledFrom([]string{"UTC", w.zone.String()}).Draw(t, "default zone"),
		}
		for i := range d.Rules {
			d.Rules[i].Name = fmt.Sprintf("rule-%d", i)
		}
		for i := range d.QuietHours {
			d.QuietHours[i].Name = fmt.Sprintf("night-%d", i)
		}
		for _, name := range categories {
			c := policy.Category{Bypass: rapid.IntRange(0, 5).Draw(t, "bypass") == 0, Reserve: map[string]int{}}
			if rapid.Bool().Draw(t, "counts is said") {
				counts := rapid.Bool().Draw(t, "counts")
				c.Counts = &counts
			}
			for _, r := range d.Rules {
				if r.Categories == nil || slices.Contains(r.Categories, name) {
					c.Reserve[r.Name] = rapid.IntRange(0, *r.Limit/3).Draw(t, "reserve")
				}
			}
			if rapid.Bool().Draw(t, "is a category") {
				d.Categories[name] = c
			}
		}
		return d
	})
}

func scenarios() *rapid.Generator[*scenario] {
	return rapid.Custom(func(t *rapid.T) *scenario {
		s := &scenario{world: worldsOf().Draw(t, "world"), buckets: map[string][]int{}}
		s.doc = s.documents().Draw(t, "document")
		if rapid.Bool().Draw(t, "has a zone") {
			s.person.Zone = s.zone
		}
		if rapid.IntRange(0, 3).Draw(t, "has a limit") == 0 {
			s.person.Limits = map[string]int{"rule-0": rapid.IntRange(0, 5).Draw(t, "own"), "unknown": 0}
		}
		legal := rapid.Bool().Draw(t, "legal")
		for i, at := range rapid.SliceOfN(s.moments(), 0, 12).Draw(t, "times") {
			s.kind = kinds().Draw(t, "kind of booking")
			if !legal || len(s.inTheWay(at, false)) == 0 {
				b := quota.Booking{ID: uuid.UUID{15: byte(i + 1)}, At: at, Kind: s.kind}
				s.bookings = quota.NewTimeline(s.bookings).Insert(b).Bookings()
			}
		}
		s.kind = kinds().Draw(t, "kind")
		return s
	})
}

// drawn draws a scenario with a valid document.
func drawn(t *rapid.T) (*scenario, *policy.Terms, quota.Timeline) {
	s := scenarios().Draw(t, "scenario")
	terms, err := s.doc.Compile(channels)
	if err != nil {
		if !strings.Contains(err.Error(), "no minute of a week") {
			t.Fatalf("%v: %v", s, err)
		}
		t.Skip("always quiet")
	}
	return s, terms, quota.NewTimeline(s.bookings)
}

func names(violations []quota.Violation) []string {
	var all []string
	for _, v := range violations {
		all = append(all, v.Rule.Name)
	}
	return all
}

// TestTerms_Oracle asks what forbids a push, and how full each rule is.
func TestTerms_Oracle(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		s, terms, line := drawn(t)
		p, shadow := terms.For(s.person, s.kind), terms.Shadow(s.person, s.kind)
		for _, at := range rapid.SliceOfN(s.moments(), 20, 60).Draw(t, "asked") {
			want := s.inTheWay(at, false)
			if got := names(p.Violations(line, at)); !slices.Equal(got, want) || p.Allows(line, at) != (len(want) == 0) {
				t.Fatalf("%v: of %v at %s: %v, the oracle says %v", s, s.kind, at.In(s.zone), got, want)
			}
			if got, want := names(shadow.Violations(line, at)), s.inTheWay(at, true); !slices.Equal(got, want) {
				t.Fatalf("%v: shadows of %v at %s: %v, the oracle says %v", s, s.kind, at.In(s.zone), got, want)
			}
			for _, u := range p.Usage(line, at) {
				r := s.doc.Rules[slices.IndexFunc(s.doc.Rules, func(r policy.Rule) bool { return r.Name == u.Rule.Name })]
				if remaining, used := s.remaining(r, at); u.Remaining != remaining || u.Used != used {
					t.Fatalf("%v: of %v at %s: %+v, the oracle says %d and %d", s, s.kind, at.In(s.zone), u, used, remaining)
				}
				seen["usage"]++
			}
			defers, rejects := false, false
			for _, q := range s.doc.QuietHours {
				if slices.Contains(want, q.Name) {
					defers, rejects = defers || q.Action == "defer", rejects || q.Action != "defer"
					seen["quiet"]++
				}
			}
			if p.Defers(at) != (defers && !rejects) {
				t.Fatalf("%v: of %v at %s: defers %v", s, s.kind, at.In(s.zone), p.Defers(at))
			}
			seen[fmt.Sprintf("%d in the way", len(want))]++
		}
	})
	t.Logf("%v", seen)
	for _, what := range []string{"usage", "quiet", "0 in the way", "1 in the way", "2 in the way"} {
		if seen[what] < 20 {
			t.Errorf("%s: only %d: %v", what, seen[what], slices.Sorted(maps.Keys(seen)))
		}
	}
}

// TestTerms_BlockedOracle looks at every quarter of the days.
func TestTerms_BlockedOracle(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s, terms, line := drawn(t)
		blocked := terms.For(s.person, s.kind).Blocked(line, s.begin, s.begin.Add(span))
		for at := s.begin; at.Before(s.begin.Add(span)); at = at.Add(grain) {
			var rules []string
			for _, i := range blocked {
				if i.Covers(at) && !slices.Contains(rules, i.Rule.Name) {
					rules = append(rules, i.Rule.Name)
				}
			}
			want := s.inTheWay(at, false)
			slices.Sort(rules)
			slices.Sort(want)
			if !slices.Equal(rules, want) {
				t.Fatalf("%v: of %v at %s: blocked by %v, the oracle says %v", s, s.kind, at.In(s.zone), rules, want)
			}
		}
	})
}

// TestTerms_FreeTimesOracle tries every quarter on the way to the free time that is found.
func TestTerms_FreeTimesOracle(t *testing.T) {
	t.Parallel()
	far := 0
	rapid.Check(t, func(t *rapid.T) {
		s, terms, line := drawn(t)
		p := terms.For(s.person, s.kind)
		asked := s.moments().Draw(t, "asked")
		next, ok := p.Next(line, asked, grain)
		for at := asked; at.Before(s.begin.Add(span + around)); at = at.Add(grain) {
			if len(s.inTheWay(at, false)) == 0 {
				if !ok || !next.Equal(at) {
					t.Fatalf("%v: next of %v after %s is %s (%v), want %s", s, s.kind, asked.In(s.zone), next.In(s.zone), ok, at.In(s.zone))
				}
				break
			} else if ok && next.Equal(at) {
				t.Fatalf("%v: next of %v after %s is %s, which is not free", s, s.kind, asked.In(s.zone), next.In(s.zone))
			}
		}
		if next.Sub(asked) > 24*time.Hour {
			far++
		}
		previous, ok := p.Previous(line, asked, grain)
		for at := asked; at.After(s.begin.Add(-around)); at = at.Add(-grain) {
			if len(s.inTheWay(at, false)) == 0 {
				if !ok || !previous.Equal(at) {
					t.Fatalf("%v: previous of %v before %s is %s (%v), want %s", s, s.kind, asked.In(s.zone), previous.In(s.zone), ok, at.In(s.zone))
				}
				break
			} else if ok && previous.Equal(at) {
				t.Fatalf("%v: previous of %v before %s is %s, which is not free", s, s.kind, asked.In(s.zone), previous.In(s.zone))
			}
		}
	})
	if far == 0 {
		t.Error("no free time was further than a day: nothing was tested")
	}
}
