package policytest

import (
	"sync"
	"time"

	"github.com/sendquota/sendquota/internal/policy"
)

// buckets caches bucketNumbers.
var buckets sync.Map

// calendar identifies the buckets of a world.
type calendar struct {
	begin    time.Time
	in, per  string
	weekFrom time.Weekday
}

// bucketNumbers returns, for each quarter that the oracle sees, the number of its bucket in a calendar.
func (w World) bucketNumbers(in *time.Location, per string, start time.Weekday) []int {
	key := calendar{w.Begin, in.String(), per, start}
	if known, ok := buckets.Load(key); ok {
		return known.([]int)
	}
	show := func(t time.Time) time.Time {
		_, ahead := t.In(in).Zone()
		return t.Add(time.Duration(ahead) * time.Second)
	}
	before := show(w.Begin.Add(-Around))
	latest, number := before, 0 // a day that has ended does not begin again
	numbers := []int{0}
	for at := w.Begin.Add(Grain - Around); at.Before(w.Begin.Add(Span + Around)); at = at.Add(Grain) {
		now := show(at)
		next := false
		switch per {
		case "hour":
			next = now.Hour() != before.Hour() || now.Sub(before) != Grain
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
	buckets.Store(key, numbers)
	return numbers
}

func (s *Scenario) zoneOf(name string) *time.Location {
	switch name {
	case "":
		return load(s.Doc.DefaultZone)
	case policy.OfRecipient:
		if s.Person.Zone == nil {
			return load(s.Doc.DefaultZone)
		}
		return s.Person.Zone
	}
	return load(name)
}

// windows calls do for each window of a rule that contains t, with its first quarter and its end, counted from the
// beginning of the world.
func (s *Scenario) windows(r policy.Rule, t time.Time, do func(from, until int)) {
	at, between := s.quarter(t)
	if r.Per == "" {
		length, _ := time.ParseDuration(r.Window)
		n := int(length / Grain)
		last := at
		if between { // a window that begins at t contains the same bookings as one that begins with the next quarter
			last++
		}
		for from := at - n + 1; from <= last; from++ {
			do(from, from+n)
		}
		return
	}
	start := time.Monday
	if r.WeekStart == "sunday" {
		start = time.Sunday
	}
	numbers := s.bucketNumbers(s.zoneOf(r.Zone), r.Per, start)
	i := at + int(Around/Grain)
	from, until := i, i+1
	for ; from > 0 && numbers[from-1] == numbers[i]; from-- {
	}
	for ; until < len(numbers) && numbers[until] == numbers[i]; until++ {
	}
	do(from-int(Around/Grain), until-int(Around/Grain))
}
