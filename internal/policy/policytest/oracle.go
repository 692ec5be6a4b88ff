// Package policytest reads policy documents by brute force, and draws documents, people and bookings for tests of
// everything that decides by policies. It knows no runs, periods or intervals. It reads the clocks of a zone every
// quarter of an hour, slides each window over every quarter, and counts.
package policytest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/policy"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/zone"
)

const (
	// Grain divides the times of bookings, the lengths of windows, and the times of clock changes in the zones of
	// worlds.
	Grain = 15 * time.Minute
	// Span is the length of a world.
	Span = 6 * 24 * time.Hour
	// Around is how far the oracle sees on both sides of a world.
	Around = 45 * 24 * time.Hour
)

// World is a place and a period.
type World struct {
	Zone  *time.Location
	Begin time.Time // on a grain
}

// Scenario is the complete input of a decision.
type Scenario struct {
	World
	Doc      policy.Document
	Person   quota.Person
	Bookings []quota.Booking
	Kind     quota.Kind // of the push to decide
}

// load returns an existing zone.
func load(name string) *time.Location {
	loaded, err := zone.Load(name)
	if err != nil {
		panic(err)
	}
	return loaded
}

// quarter returns the number of the quarter that t lies in, and whether t lies behind its beginning.
func (s *Scenario) quarter(t time.Time) (n int, behind bool) {
	since := t.Sub(s.Begin)
	n = int(since / Grain)
	if since < 0 && since%Grain != 0 {
		n--
	}
	return n, since%Grain != 0
}

// Covers reports whether a scope includes a kind.
func Covers(channels, categories []string, k quota.Kind) bool {
	return (channels == nil || slices.Contains(channels, k.Channel)) && (categories == nil || slices.Contains(categories, k.Category))
}

// counted returns the bookings that a rule counts in [from, until), except those of a category.
func (s *Scenario) counted(r policy.Rule, from, until int, without *string) (ids []uuid.UUID) {
	for _, b := range s.Bookings {
		at, _ := s.quarter(b.At)
		counts := s.Doc.Categories[b.Kind.Category].Counts
		if at >= from && at < until && Covers(r.Channels, r.Categories, b.Kind) && (counts == nil || *counts) && (without == nil || *without != b.Kind.Category) {
			ids = append(ids, b.ID)
		}
	}
	return ids
}

func (s *Scenario) limit(r policy.Rule) int {
	if own, ok := s.Person.Limits[r.Name]; ok {
		return own
	}
	return *r.Limit
}

// Remaining returns how many more pushes a rule allows at t, and how many it has counted.
func (s *Scenario) Remaining(r policy.Rule, t time.Time) (remaining, used int) {
	remaining = s.limit(r)
	s.windows(r, t, func(from, until int) {
		n := len(s.counted(r, from, until, nil))
		used, remaining = max(used, n), min(remaining, s.limit(r)-n)
		for name, category := range s.Doc.Categories {
			if kept := category.Reserve[r.Name]; kept > 0 && name != s.Kind.Category {
				remaining = min(remaining, s.limit(r)-kept-len(s.counted(r, from, until, &name)))
			}
		}
	})
	return max(0, remaining), used
}

// Conflicts returns the bookings that leave a rule no place at t: if the rule itself is full, all that it counts,
// otherwise the ones outside the full reserve.
func (s *Scenario) Conflicts(r policy.Rule, t time.Time) []uuid.UUID {
	full := func(places int, without *string) (ids []uuid.UUID, full bool) {
		full = places <= 0
		s.windows(r, t, func(from, until int) {
			if in := s.counted(r, from, until, without); places > 0 && len(in) >= places {
				ids, full = append(ids, in...), true
			}
		})
		slices.SortFunc(ids, func(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) })
		return slices.Compact(ids), full
	}
	ids, broken := full(s.limit(r), nil)
	for _, name := range slices.Sorted(maps.Keys(s.Doc.Categories)) {
		if kept := s.Doc.Categories[name].Reserve[r.Name]; kept > 0 && name != s.Kind.Category && !broken {
			ids, broken = full(s.limit(r)-kept, &name)
		}
	}
	return ids
}

// QuietAt reports whether quiet hours cover t.
func (s *Scenario) QuietAt(q policy.QuietHours, t time.Time) bool {
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

// InTheWay names every rule that forbids a push at t or, for shadow rules, that would.
func (s *Scenario) InTheWay(t time.Time, shadow bool) []string {
	var names []string
	if s.Doc.Categories[s.Kind.Category].Bypass {
		return nil
	}
	for _, r := range s.Doc.Rules {
		if r.Shadow != shadow || !Covers(r.Channels, r.Categories, s.Kind) {
			continue
		}
		if remaining, _ := s.Remaining(r, t); remaining == 0 {
			names = append(names, r.Name)
		}
	}
	for _, q := range s.Doc.QuietHours {
		if !shadow && Covers(q.Channels, q.Categories, s.Kind) && s.QuietAt(q, t) {
			names = append(names, q.Name)
		}
	}
	return names
}

// Free reports whether nothing forbids a push at t.
func (s *Scenario) Free(t time.Time) bool { return len(s.InTheWay(t, false)) == 0 }

// Defers reports whether a push at t moves by itself: it lies in quiet hours that defer, and in none that reject.
func (s *Scenario) Defers(t time.Time) bool {
	defers := false
	for _, q := range s.Doc.QuietHours {
		if !s.Doc.Categories[s.Kind.Category].Bypass && Covers(q.Channels, q.Categories, s.Kind) && s.QuietAt(q, t) {
			if q.Action != "defer" {
				return false
			}
			defers = true
		}
	}
	return defers
}

// Sees reports whether t is so near to the world that the oracle sees every month around it.
func (s *Scenario) Sees(t time.Time) bool {
	return t.Before(s.Begin.Add(Span + Around - 31*24*time.Hour))
}

// Next returns the first free quarter at or after t that the oracle sees.
func (s *Scenario) Next(t time.Time) (time.Time, bool) {
	for ; s.Sees(t); t = t.Add(Grain) {
		if s.Free(t) {
			return t, true
		}
	}
	return t, false
}

// Previous returns the last free second at or before t that the oracle sees. All seconds of a quarter are alike.
func (s *Scenario) Previous(t time.Time) (time.Time, bool) {
	for ; t.After(s.Begin.Add(Grain - Around)); t = t.Add(-Grain) {
		if s.Free(t) {
			return t, true
		}
		if before := t.Add(-time.Second); s.Free(before) {
			return before, true
		}
	}
	return t, false
}

// String describes the scenario.
func (s *Scenario) String() string {
	text := fmt.Sprintf("%s, %+v to %v, booked", s.Zone, s.Doc, s.Person)
	for _, r := range s.Doc.Rules {
		text += fmt.Sprintf(" [%s: %d]", r.Name, *r.Limit)
	}
	for _, b := range s.Bookings {
		text += fmt.Sprintf(" %s%v", b.At.In(s.Zone).Format("02T15:04-07"), b.Kind)
	}
	return text
}
