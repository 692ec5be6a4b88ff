package axis

import (
	"time"

	"github.com/sendquota/sendquota/internal/console/frame"

	"github.com/sendquota/sendquota/internal/zone"
)

// axisTick is a line of the axis.
type axisTick struct {
	At    time.Time
	Label string // what the clocks show; empty: a thin line without one
	Day   string // the date, where a day begins
}

// ticks returns the lines of an axis at round local times. On a day with a clock change, the distances between ticks differ.
func (a Axis) ticks() []axisTick {
	switch a.Scale {
	case scaleHour:
		return a.clockTicks(10 * time.Minute)
	case scaleHours:
		return a.clockTicks(time.Hour)
	case ScaleWeek, ScaleMonth:
		return a.dayTicks()
	}
	return a.clockTicks(3 * time.Hour)
}

// clockTicks returns ticks at multiples of a step in local time. In an hour that occurs twice, each tick has its offset from UTC.
func (a Axis) clockTicks(step time.Duration) (ticks []axisTick) {
	for from := a.From.In(a.Zone); from.Before(a.Until); {
		_, until := from.ZoneBounds()
		if until.IsZero() || until.After(a.Until) {
			until = a.Until
		}
		at := floorLocal(from, step)
		if at.Before(from) {
			at = at.Add(step)
		}
		for ; at.Before(until); at = at.Add(step) {
			tick := axisTick{At: at, Label: at.Format("15:04")}
			if len(zone.Instants(zone.Shown(at, a.Zone), a.Zone)) > 1 {
				tick.Label = at.Format("15:04 -07:00")
			}
			if at.Equal(LocalDay(at, 0, 0)) {
				tick.Day = at.Format("Mon 2 Jan")
			}
			ticks = append(ticks, tick)
		}
		from = until.In(a.Zone)
	}
	return ticks
}

// dayTicks are at the beginning of each day. Those of a month name the Mondays alone.
func (a Axis) dayTicks() (ticks []axisTick) {
	for at := LocalDay(a.From.In(a.Zone), 0, 0); at.Before(a.Until); at = LocalDay(at, 0, 1) {
		if at.Before(a.From) {
			continue
		}
		tick := axisTick{At: at}
		switch {
		case a.Scale == ScaleWeek:
			tick.Label = at.Format("Mon 2 Jan")
		case at.Weekday() == time.Monday:
			tick.Label = at.Format("Mon 2")
		}
		if at.Day() == 1 {
			tick.Day = at.Format("January 2006")
		}
		ticks = append(ticks, tick)
	}
	return ticks
}

// clockChange is a clock change of a zone.
type clockChange struct {
	At time.Time
	By time.Duration // forward; less than zero: back
}

// changes returns the clock changes within the axis.
func (a Axis) changes() (all []clockChange) {
	for at := a.From.In(a.Zone); ; {
		_, until := at.ZoneBounds()
		if until.IsZero() || !until.Before(a.Until) {
			return all
		}
		until = until.In(a.Zone)
		_, before := at.Zone()
		if _, after := until.Zone(); after != before {
			all = append(all, clockChange{until, time.Duration(after-before) * time.Second})
		}
		at = until
	}
}

// Label describes the clock change.
func (c clockChange) Label() string {
	if c.By < 0 {
		return "clocks back " + frame.Span(-c.By)
	}
	return "clocks forward " + frame.Span(c.By)
}
