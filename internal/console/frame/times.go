package frame

import (
	"fmt"
	"html/template"
	"time"
)

// Times shows times in the zone of the page.
type Times struct {
	Zones Zones
	Clock func() time.Time
}

// Now is the moment that distances are counted from.
func (s *Times) Now() time.Time { return s.Clock() }

// Written is a moment as people read it: by the clocks of a zone, with the name of the zone, and how far it is from now.
func Written(t time.Time, in *time.Location, now time.Time) (clocks, named, away string) {
	shown := t.In(in)
	clocks = shown.Format("2006-01-02 15:04:05")
	if t.Nanosecond() != 0 {
		clocks = shown.Format("2006-01-02 15:04:05.000")
	}
	return clocks, zoneName(shown), distance(t.Sub(now))
}

// Time shows a moment in the chosen zone, with the name of the zone and how far it is away. A zero time is a dash.
func (s *Times) Time(t time.Time) template.HTML {
	if t.IsZero() {
		return "–"
	}
	clocks, named, away := Written(t, s.Zones.Shown(), s.Now())
	return TimeElement(t, clocks, named, away)
}

// TimeElement marks up a moment as it is written.
func TimeElement(t time.Time, clocks, named, away string) template.HTML {
	return template.HTML(fmt.Sprintf(`<time datetime="%s">%s <span class="zone">%s</span> <span class="distance">%s</span></time>`,
		t.UTC().Format(time.RFC3339Nano), clocks, template.HTMLEscapeString(named), away))
}

// plainTime is a moment as Time shows it, without marks.
func (s *Times) PlainTime(t time.Time) string { return PlainTime(t, s.Zones.Shown(), s.Now()) }

func PlainTime(t time.Time, in *time.Location, now time.Time) string {
	clocks, named, away := Written(t, in, now)
	return clocks + " " + named + ", " + away
}

// Machine is a moment as programs write it, for hidden fields and addresses.
func (s *Times) Machine(t time.Time) string { return RFC3339(t) }

// distance says how far a moment is away, in one unit.
func distance(d time.Duration) string {
	text := Span(d.Abs())
	switch {
	case d.Abs() < time.Second:
		return "now"
	case d < 0:
		return text + " ago"
	}
	return "in " + text
}

// Span is a duration in its largest unit, or two where one is coarse.
func Span(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%d min", d/time.Minute)
	case d < 24*time.Hour:
		return two(d, time.Hour, "h", time.Minute, "min")
	}
	return two(d, 24*time.Hour, "d", time.Hour, "h")
}

func two(d, large time.Duration, largeName string, small time.Duration, smallName string) string {
	text := fmt.Sprintf("%d %s", d/large, largeName)
	if rest := d % large / small; rest > 0 && d < 10*large {
		text += fmt.Sprintf(" %d %s", int64(rest), smallName)
	}
	return text
}
