package console

import (
	"time"

	"github.com/sendquota/sendquota/internal/zone"
)

// A time axis shows what is booked, blocked and free in a stretch of time. This file says which stretches there are, and what is
// to be seen in one; timeaxisticks.go where its ticks are, and timeaxissvg.go draws it. All of it is pure: the same values make the
// same picture.

// axisScale is how much time an axis shows.
type axisScale string

// The scales. A day, a week and a month begin at midnight in the zone that is shown, and are as long as its clocks make them.
const (
	scaleHour  axisScale = "hour"
	scaleHours axisScale = "6h"
	scaleDay   axisScale = "day"
	scaleWeek  axisScale = "week"
	scaleMonth axisScale = "month"
)

type namedScale struct {
	Scale axisScale
	Name  string
}

// axisScales lists them, the shortest first, with their names for people.
var axisScales = []namedScale{{scaleHour, "1 hour"}, {scaleHours, "6 hours"}, {scaleDay, "1 day"}, {scaleWeek, "1 week"}, {scaleMonth, "1 month"}}

// readScale is the scale with a name; one that there is not is a day.
func readScale(name string) axisScale {
	for _, s := range axisScales {
		if string(s.Scale) == name {
			return s.Scale
		}
	}
	return scaleDay
}

// Window is the stretch of time that an axis shows of which a moment is to be seen: half-open, in whole seconds.
func (s axisScale) Window(at time.Time, in *time.Location) (from, until time.Time) {
	at = at.In(in)
	switch s {
	case scaleHour:
		from = floorLocal(at, 10*time.Minute).Add(-10 * time.Minute)
		return from, from.Add(time.Hour)
	case scaleHours:
		from = floorLocal(at, time.Hour).Add(-time.Hour)
		return from, from.Add(6 * time.Hour)
	case scaleWeek:
		return localDay(at, 0, 0), localDay(at, 0, 7)
	case scaleMonth:
		return localDay(at, 0, 0), localDay(at, 1, 0)
	}
	return localDay(at, 0, 0), localDay(at, 0, 1)
}

// Shift is the moment whose window lies so many windows later.
func (s axisScale) Shift(at time.Time, by int, in *time.Location) time.Time {
	switch at = at.In(in); s {
	case scaleHour:
		return at.Add(time.Duration(by) * time.Hour)
	case scaleHours:
		return at.Add(time.Duration(by) * 6 * time.Hour)
	case scaleWeek:
		return localDay(at, 0, 7*by)
	case scaleMonth:
		return localDay(at, by, 0)
	}
	return localDay(at, 0, by)
}

// Step is how far an arrow key moves the cursor.
func (s axisScale) Step() time.Duration {
	switch s {
	case scaleHour:
		return 10 * time.Second
	case scaleHours:
		return time.Minute
	case scaleDay:
		return 5 * time.Minute
	case scaleWeek:
		return 30 * time.Minute
	}
	return 2 * time.Hour
}

// localDay is the first instant of a day: that of a moment, or one so many months and days later.
func localDay(at time.Time, months, days int) time.Time {
	y, m, d := at.Date()
	return zone.Instant(time.Date(y, m+time.Month(months), d+days, 0, 0, 0, 0, time.UTC), at.Location()).In(at.Location())
}

// floorLocal rounds a moment down to what the clocks of its zone show at a multiple of a step.
func floorLocal(at time.Time, step time.Duration) time.Time {
	_, offset := at.Zone()
	ahead := time.Duration(offset) * time.Second
	return at.Add(ahead).Truncate(step).Add(-ahead)
}

// axisSpan is a stretch of time in a lane, half-open. A zero bound is without end.
type axisSpan struct{ From, Until time.Time }

// axisMark is a moment in a lane.
type axisMark struct {
	At     time.Time
	ID     string // of a push that can be moved; empty: of none
	Status string // of a push or of an attempt: scheduled, sending, sent, …, delivered, refused, unknown
	Title  string // what a mouse that rests on it is told
}

// axisLane is a row of the axis.
type axisLane struct {
	Name  string
	Kind  string // pushes, sends, rule, quiet or free
	Spans []axisSpan
	Marks []axisMark
}

// timeAxis is all that an axis shows.
type timeAxis struct {
	From, Until time.Time
	Zone        *time.Location
	Scale       axisScale
	Now         time.Time
	Cursor      time.Time // zero: there is none
	Title       string
	Lanes       []axisLane
}

type scaleChoice struct {
	Name, Link string
	Current    bool
}
