package calendar

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/sendquota/sendquota/internal/console/axis"

	"github.com/sendquota/sendquota/internal/console/frame"

	"github.com/sendquota/sendquota/internal/zone"
)

// A calendar shows a month or a week as a row for each day and a column for each hour that the clocks of a zone show. This file is
// what stands where; calendarsvg.go draws it. All of it is pure.

// calendarScale is the period that a calendar shows.
type calendarScale string

const (
	calendarMonth calendarScale = "month"
	calendarWeek  calendarScale = "week"
)

// readCalendarScale is the scale with a name; one that there is not is a month.
func readCalendarScale(name string) calendarScale {
	if name == string(calendarWeek) {
		return calendarWeek
	}
	return calendarMonth
}

// Window is the month, or the week from a Monday on, that a moment lies in, by the clocks of a zone.
func (s calendarScale) Window(at time.Time, in *time.Location) (from, until time.Time) {
	at = at.In(in)
	if s == calendarWeek {
		monday := -(int(at.Weekday()) + 6) % 7
		return axis.LocalDay(at, 0, monday), axis.LocalDay(at, 0, monday+7)
	}
	from = axis.LocalDay(at, 0, 1-at.Day())
	return from, axis.LocalDay(from, 1, 0)
}

// Shift returns a day in the period that is by periods later.
func (s calendarScale) Shift(at time.Time, by int, in *time.Location) time.Time {
	from, _ := s.Window(at, in)
	if s == calendarWeek {
		return axis.LocalDay(from, 0, 7*by)
	}
	return axis.LocalDay(from, by, 0)
}

// HourCell is an hour, which begins where an hour of UTC does, with how many there are in it.
type HourCell struct {
	From time.Time // in the zone that is shown
	N    int64
	Over bool // it is above the ceiling
}

// Until is the end of the hour.
func (h HourCell) Until() time.Time { return h.From.Add(time.Hour) }

// Clock returns the local time when the hour begins, with the offset if that time occurs twice.
func (h HourCell) Clock() string {
	if len(zone.Instants(zone.Shown(h.From, h.From.Location()), h.From.Location())) > 1 {
		return h.From.Format("15:04 -07:00")
	}
	return h.From.Format("15:04")
}

// calendarDay is a row: a day with the hours that begin in it, 23 to 25 of them.
type calendarDay struct {
	Date  time.Time // its first instant
	Hours []HourCell
	Best  int64 // in a map of percentages: the value of the whole day
}

// Name is the date in words.
func (d calendarDay) Name() string { return d.Date.Format("Mon 2 Jan") }

// Odd returns the length of a day with a clock change; empty for other days.
func (d calendarDay) Odd() string {
	switch length := axis.LocalDay(d.Date, 0, 1).Sub(d.Date); {
	case length == 24*time.Hour:
		return ""
	case length%time.Hour == 0:
		return fmt.Sprintf("%d h", length/time.Hour)
	case length%time.Hour == 30*time.Minute:
		return fmt.Sprintf("%d½ h", length/time.Hour)
	default:
		return fmt.Sprintf("%d h %d min", length/time.Hour, length%time.Hour/time.Minute)
	}
}

// Sum returns the sum of the day.
func (d calendarDay) Sum() (n int64) {
	for _, h := range d.Hours {
		n += h.N
	}
	return n
}

// Columns returns the hours of the day by local time. On a day with a clock change, a column can be empty or have two hours.
func (d calendarDay) Columns() [24][]HourCell {
	var all [24][]HourCell
	for _, h := range d.Hours {
		all[h.From.Hour()] = append(all[h.From.Hour()], h)
	}
	return all
}

// heatMap is a calendar of numbers.
type heatMap struct {
	Days   []calendarDay
	Step   int64 // how many one level of heat is
	Max    int64 // of an hour
	Now    time.Time
	Title  string
	ID     string // of the drawing on its page
	Suffix string // of each number, such as " %"
}

// newHeatMap lays out and fills the hours between two times. A step of 0 takes the step of colours from the largest number.
func newHeatMap(from, until time.Time, in *time.Location, counts map[int64]int64, step int64) *heatMap {
	m := &heatMap{Step: step}
	for day := axis.LocalDay(from.In(in), 0, 0); day.Before(until); day = axis.LocalDay(day, 0, 1) {
		row, end := calendarDay{Date: day}, axis.LocalDay(day, 0, 1)
		at := day.UTC().Truncate(time.Hour)
		if at.Before(day) {
			at = at.Add(time.Hour)
		}
		for ; at.Before(end); at = at.Add(time.Hour) {
			n := counts[at.Unix()]
			m.Max = max(m.Max, n)
			row.Hours = append(row.Hours, HourCell{From: at.In(in), N: n})
		}
		m.Days = append(m.Days, row)
	}
	m.Step = cmp.Or(m.Step, heatStep(m.Max))
	return m
}

// heatLevels is the number of colours besides the colour of zero.
const heatLevels = 5

// heatStep returns the size of a level: a round number, so that the largest number fits into the levels.
func heatStep(largest int64) int64 {
	for unit := int64(1); ; unit *= 10 {
		for _, step := range []int64{1, 2, 3, 4, 5, 6, 8} {
			if step*unit*heatLevels >= largest {
				return step * unit
			}
		}
	}
}

// Level is the heat of a number: 0 is none.
func (m *heatMap) Level(n int64) int64 { return min((n+m.Step-1)/m.Step, heatLevels) }

// heatName names a level of heat.
type heatName struct {
	Level int64
	Text  string
}

// Legend names the levels.
func (m *heatMap) Legend() []heatName {
	all := []heatName{{0, "none"}}
	for level := int64(1); level <= heatLevels; level++ {
		first, last := (level-1)*m.Step+1, level*m.Step
		text := frame.Number(first) + " to " + frame.Number(last)
		if first == last {
			text = frame.Number(first)
		}
		if level == heatLevels && m.Suffix == "" && m.Max > last {
			text = frame.Number(first) + " and more"
		}
		all = append(all, heatName{level, text + m.Suffix})
	}
	return all
}

// Total returns the sum of the map.
func (m *heatMap) Total() (n int64) {
	for _, d := range m.Days {
		n += d.Sum()
	}
	return n
}

// markOver marks the hours that are above a ceiling.
func (m *heatMap) markOver(over map[int64]bool) {
	for _, d := range m.Days {
		for i := range d.Hours {
			d.Hours[i].Over = over[d.Hours[i].From.Unix()]
		}
	}
}

// HalfHours says that the hours do not begin where the clocks show a whole one.
func (m *heatMap) HalfHours() bool {
	for _, d := range m.Days {
		for _, h := range d.Hours {
			if h.From.Minute() != 0 {
				return true
			}
		}
	}
	return false
}

// shortNumber writes a number in at most four characters.
func shortNumber(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprint(n)
	case n < 10_000:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(n/100)/10), ".0") + "k"
	case n < 1_000_000:
		return fmt.Sprint(n/1000) + "k"
	case n < 10_000_000:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", float64(n/100_000)/10), ".0") + "M"
	}
	return fmt.Sprint(n/1_000_000) + "M"
}
