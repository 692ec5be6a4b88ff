package policytest

import (
	"fmt"
	"time"

	"pgregory.net/rapid"

	"github.com/sendquota/sendquota/internal/policy"
	"github.com/sendquota/sendquota/internal/quota"
)

// Channels and Categories are the names to draw from.
var (
	Channels   = []string{"sms", "email"}
	Categories = []string{"news", "offers", "alerts"}
)

// Worlds draws worlds around changes of odd zones' clocks.
func Worlds() *rapid.Generator[World] {
	return rapid.Map(rapid.SampledFrom([]struct{ zone, about string }{
		{"Europe/Berlin", "2026-03-29"}, // 23 hours
		{"Europe/Berlin", "2026-10-25"}, // 25 hours
		{"Australia/Lord_Howe", "2026-04-05"},
		{"Australia/Lord_Howe", "2026-10-04"},
		{"Pacific/Apia", "2011-12-30"}, // missing
		{"Asia/Kathmandu", "1986-01-01"},
		{"America/Sao_Paulo", "2018-11-04"}, // begins at 01:00
		{"America/Havana", "2026-11-01"},
	}), func(w struct{ zone, about string }) World {
		about, err := time.Parse(time.DateOnly, w.about)
		if err != nil {
			panic(err)
		}
		return World{load(w.zone), about.Add(-Span / 2)}
	})
}

// Ahead draws worlds between a month and ten months after now, around a change of the zone's clocks if there is one.
func Ahead(now time.Time) *rapid.Generator[World] {
	var worlds []World
	for _, name := range []string{"Europe/Berlin", "Australia/Lord_Howe", "America/Havana", "Asia/Kathmandu", "Pacific/Apia"} {
		w := World{load(name), now.Truncate(24*time.Hour).AddDate(0, 0, 50)}
		_, before := w.Begin.In(w.Zone).Zone()
		for at := w.Begin; at.Before(now.AddDate(0, 0, 300)); at = at.Add(24 * time.Hour) {
			_, ahead := at.In(w.Zone).Zone()
			if ahead != before {
				w.Begin, before = at.Add(-Span/2), ahead
				worlds = append(worlds, w)
			}
		}
		if len(worlds) == 0 || worlds[len(worlds)-1].Zone != w.Zone {
			worlds = append(worlds, w)
		}
	}
	return rapid.SampledFrom(worlds)
}

// Moments draws times of a world.
func (w World) Moments() *rapid.Generator[time.Time] {
	return rapid.Map(rapid.IntRange(0, int(Span/Grain)), func(n int) time.Time { return w.Begin.Add(time.Duration(n) * Grain) })
}

func someOf(names []string) *rapid.Generator[[]string] {
	return rapid.OneOf(rapid.Just[[]string](nil), rapid.SliceOfNDistinct(rapid.SampledFrom(names), 1, 2, rapid.ID[string]))
}

// Kinds draws kinds of pushes.
func Kinds() *rapid.Generator[quota.Kind] {
	return rapid.Custom(func(t *rapid.T) quota.Kind {
		return quota.Kind{Channel: rapid.SampledFrom(Channels).Draw(t, "channel"), Category: rapid.SampledFrom(append([]string{""}, Categories...)).Draw(t, "category")}
	})
}

// rules draws rules with a limit of at least least.
func (w World) rules(least int) *rapid.Generator[policy.Rule] {
	return rapid.Custom(func(t *rapid.T) policy.Rule {
		limit := rapid.IntRange(least, 4).Draw(t, "limit")
		r := policy.Rule{Limit: &limit, Shadow: rapid.IntRange(0, 5).Draw(t, "shadow") == 0}
		r.Channels, r.Categories = someOf(Channels).Draw(t, "channels"), someOf(Categories).Draw(t, "categories")
		if rapid.Bool().Draw(t, "rolling") {
			r.Window = (time.Duration(rapid.IntRange(1, 30).Draw(t, "window")) * Grain).String()
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

func (w World) zones() *rapid.Generator[string] {
	return rapid.SampledFrom([]string{"", policy.OfRecipient, w.Zone.String(), "Asia/Tokyo"})
}

func (w World) quietHours() *rapid.Generator[policy.QuietHours] {
	clock := rapid.Map(rapid.IntRange(0, 95), func(n int) string { return time.Time{}.Add(time.Duration(n) * Grain).Format("15:04") })
	days := []string{"mon", "tue", "wed", "thu", "fri", "sat", "sun"}
	return rapid.Custom(func(t *rapid.T) policy.QuietHours {
		return policy.QuietHours{
			From: clock.Draw(t, "from"), Until: clock.Draw(t, "until"), Zone: w.zones().Draw(t, "zone"),
			Days:     rapid.OneOf(rapid.Just[[]string](nil), rapid.SliceOfNDistinct(rapid.SampledFrom(days), 1, 6, rapid.ID[string])).Draw(t, "days"),
			Channels: someOf(Channels).Draw(t, "channels"), Categories: someOf(Categories).Draw(t, "categories"),
			Action: rapid.SampledFrom([]string{"", "reject", "defer"}).Draw(t, "action"),
		}
	})
}

// Documents draws documents whose rules have a limit of at least leastLimit. Some have quiet hours that leave no free
// time.
func (w World) Documents(leastLimit int) *rapid.Generator[policy.Document] {
	return rapid.Custom(func(t *rapid.T) policy.Document {
		d := policy.Document{
			Rules:       rapid.SliceOfN(w.rules(leastLimit), 0, 4).Draw(t, "rules"),
			QuietHours:  rapid.SliceOfN(w.quietHours(), 0, 2).Draw(t, "quiet hours"),
			Categories:  map[string]policy.Category{},
			DefaultZone: rapid.SampledFrom([]string{"UTC", w.Zone.String()}).Draw(t, "default zone"),
		}
		for i := range d.Rules {
			d.Rules[i].Name = fmt.Sprintf("rule-%d", i)
		}
		for i := range d.QuietHours {
			d.QuietHours[i].Name = fmt.Sprintf("night-%d", i)
		}
		for _, name := range Categories {
			c := policy.Category{Bypass: rapid.IntRange(0, 5).Draw(t, "bypass") == 0, Reserve: map[string]int{}}
			if rapid.Bool().Draw(t, "counts is given") {
				counts := rapid.Bool().Draw(t, "counts")
				c.Counts = &counts
			}
			for _, r := range d.Rules { // also for rules that do not count the category
				c.Reserve[r.Name] = rapid.IntRange(0, *r.Limit/3).Draw(t, "reserve")
			}
			if rapid.Bool().Draw(t, "is a category") {
				d.Categories[name] = c
			}
		}
		return d
	})
}

// People draws the recipient's data that rules depend on.
func (w World) People() *rapid.Generator[quota.Person] {
	return rapid.Custom(func(t *rapid.T) (p quota.Person) {
		if rapid.Bool().Draw(t, "has a zone") {
			p.Zone = w.Zone
		}
		if rapid.IntRange(0, 3).Draw(t, "has a limit") == 0 {
			p.Limits = map[string]int{"rule-0": rapid.IntRange(0, 5).Draw(t, "own"), "unknown": 0}
		}
		return p
	})
}
