package zone

import (
	"slices"
	"time"
)

// Unit is the length of a calendar's buckets.
type Unit int

// The units.
const (
	Hour Unit = iota
	Day
	Week
	Month
)

var unitNames = []string{"hour", "day", "week", "month"}

// String returns the unit's name, such as day.
func (u Unit) String() string { return unitNames[u] }

// ParseUnit returns the unit with a name, and whether it exists.
func ParseUnit(name string) (Unit, bool) {
	i := slices.Index(unitNames, name)
	return Unit(max(i, 0)), i >= 0
}

// Calendar divides all time into buckets: the hours, days, weeks or months of a zone. They are half-open: a bucket
// begins where the one before it ends.
//
// An hour ends at the next full hour of the zone's clocks, or where they are moved. So each of the two equal hours of
// autumn is a bucket of its own. A day begins at the [Instant] of its midnight, and a week and a month with their first day.
type Calendar struct {
	Zone      *time.Location
	Unit      Unit
	WeekStart time.Weekday // of a week
}

// Around returns the bucket [from, until) that t lies in. inside is always true.
func (c Calendar) Around(t time.Time) (from, until time.Time, inside bool) {
	t = t.In(c.Zone)
	if c.Unit == Hour {
		from, until = hourAround(t)
		return from, until, true
	}
	begin := c.begin(shown(t))
	for {
		end := c.next(begin)
		// When the clocks go back over midnight, they show part of the previous day again.
		if until = Instant(end, c.Zone); t.Before(until) {
			return Instant(begin, c.Zone), until, true
		}
		begin = end
	}
}

// hourAround returns the hour of t in its zone.
func hourAround(t time.Time) (from, until time.Time) {
	from = t.Add(-shown(t).Sub(shown(t).Truncate(time.Hour)))
	until = from.Add(time.Hour)
	s := stretchAt(t)
	if from.Before(s.from) {
		from = s.from
	}
	if !s.until.IsZero() && s.until.Before(until) {
		until = s.until
	}
	return from, until
}

// begin returns the midnight at the start of the bucket of a local time.
func (c Calendar) begin(local time.Time) time.Time {
	year, month, day := local.Date()
	switch c.Unit {
	case Week:
		day -= (int(local.Weekday()-c.WeekStart) + 7) % 7
	case Month:
		day = 1
	}
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
}

// next returns the midnight at the start of the next bucket.
func (c Calendar) next(begin time.Time) time.Time {
	switch c.Unit {
	case Week:
		return begin.AddDate(0, 0, 7)
	case Month:
		return begin.AddDate(0, 1, 0)
	}
	return begin.AddDate(0, 0, 1)
}

// Longest returns an upper bound of all buckets, for any clock change in them.
func (c Calendar) Longest() time.Duration {
	const day = 24 * time.Hour
	switch c.Unit {
	case Hour:
		return time.Hour
	case Week:
		return 7*day + Moved
	case Month:
		return 31*day + Moved
	}
	return day + Moved
}
