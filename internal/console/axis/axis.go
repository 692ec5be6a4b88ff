// Package axis draws what is scheduled, blocked and free in a period on a time axis. It is pure: the same values make the same
// picture. It has no pages.
package axis

import (
	"time"

	"github.com/sendquota/sendquota/internal/zone"
)

// Scale is the period that an axis shows.
type Scale string

// The scales. A day, a week and a month begin at midnight in the zone that is shown, and are as long as its clocks make them.
const (
	scaleHour  Scale = "hour"
	scaleHours Scale = "6h"
	scaleDay   Scale = "day"
	ScaleWeek  Scale = "week"
	ScaleMonth Scale = "month"
)

type NamedScale struct {
	Scale Scale
	Name  string
}

// Scales lists them, the shortest first, with their names for people.
var Scales = []NamedScale{{scaleHour, "1 hour"}, {scaleHours, "6 hours"}, {scaleDay, "1 day"}, {ScaleWeek, "1 week"}, {ScaleMonth, "1 month"}}

// ReadScale is the scale with a name; one that there is not is a day.
func ReadScale(name string) Scale {
	for _, s := range Scales {
		if string(s.Scale) == name {
			return s.Scale
		}
	}
	return scaleDay
}

// Window returns the period of an axis that includes a time: half-open, in whole seconds.
func (s Scale) Window(at time.Time, in *time.Location) (from, until time.Time) {
	at = at.In(in)
	switch s {
	case scaleHour:
		from = floorLocal(at, 10*time.Minute).Add(-10 * time.Minute)
		return from, from.Add(time.Hour)
	case scaleHours:
		from = floorLocal(at, time.Hour).Add(-time.Hour)
		return from, from.Add(6 * time.Hour)
	case ScaleWeek:
		return LocalDay(at, 0, 0), LocalDay(at, 0, 7)
	case ScaleMonth:
		return LocalDay(at, 0, 0), LocalDay(at, 1, 0)
	}
	return LocalDay(at, 0, 0), LocalDay(at, 0, 1)
}

// Shift returns a time whose window is by windows later.
func (s Scale) Shift(at time.Time, by int, in *time.Location) time.Time {
	switch at = at.In(in); s {
	case scaleHour:
		return at.Add(time.Duration(by) * time.Hour)
	case scaleHours:
		return at.Add(time.Duration(by) * 6 * time.Hour)
	case ScaleWeek:
		return LocalDay(at, 0, 7*by)
	case ScaleMonth:
		return LocalDay(at, by, 0)
	}
	return LocalDay(at, 0, by)
}

// Step returns the distance that an arrow key moves the cursor.
func (s Scale) Step() time.Duration {
	switch s {
	case scaleHour:
		return 10 * time.Second
	case scaleHours:
		return time.Minute
	case scaleDay:
		return 5 * time.Minute
	case ScaleWeek:
		return 30 * time.Minute
	}
	return 2 * time.Hour
}

// LocalDay returns the start of the day that is some months and days after the day of a time.
func LocalDay(at time.Time, months, days int) time.Time {
	y, m, d := at.Date()
	return zone.Instant(time.Date(y, m+time.Month(months), d+days, 0, 0, 0, 0, time.UTC), at.Location()).In(at.Location())
}

// floorLocal rounds a moment down to what the clocks of its zone show at a multiple of a step.
func floorLocal(at time.Time, step time.Duration) time.Time {
	_, offset := at.Zone()
	ahead := time.Duration(offset) * time.Second
	return at.Add(ahead).Truncate(step).Add(-ahead)
}

// Span is a stretch of time in a lane, half-open. A zero bound is without end.
type Span struct{ From, Until time.Time }

// Mark is a moment in a lane.
type Mark struct {
	At     time.Time
	ID     string // of a push that can be moved; empty: of none
	Status string // of a push or of an attempt: scheduled, sending, sent, …, delivered, refused, unknown
	Title  string // the tooltip
}

// Lane is a row of the axis.
type Lane struct {
	Name  string
	Kind  string // pushes, sends, rule, quiet or free
	Spans []Span
	Marks []Mark
}

// Axis is all that an axis shows.
type Axis struct {
	From, Until time.Time
	Zone        *time.Location
	Scale       Scale
	Now         time.Time
	Cursor      time.Time // zero: there is none
	Title       string
	Lanes       []Lane
}

type Choice struct {
	Name, Link string
	Current    bool
}
