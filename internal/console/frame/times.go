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

// Now returns the current time, which distances start from.
func (s *Times) Now() time.Time { return s.Clock() }

// FormatTime formats a time for people: the local time in a zone, the name of the zone, and the distance from now.
func FormatTime(t time.Time, in *time.Location, now time.Time) (clocks, named, away string) {
	shown := t.In(in)
	clocks = shown.Format("2006-01-02 15:04:05")
	if t.Nanosecond() != 0 {
		clocks = shown.Format("2006-01-02 15:04:05.000")
	}
	return clocks, zoneName(shown), distance(t.Sub(now))
}

// Time shows a time in the chosen zone, with the name of the zone and the distance from now. A zero time is a dash.
func (s *Times) Time(t time.Time) template.HTML {
	if t.IsZero() {
		return "–"
	}
	clocks, named, away := FormatTime(t, s.Zones.Shown(), s.Now())
	return TimeElement(t, clocks, named, away)
}

// TimeElement returns the HTML of a formatted time.
func TimeElement(t time.Time, clocks, named, away string) template.HTML {
	return template.HTML(fmt.Sprintf(`<time datetime="%s">%s <span class="zone">%s</span> <span class="distance">%s</span></time>`,
		t.UTC().Format(time.RFC3339Nano), clocks, template.HTMLEscapeString(named), away))
}

// PlainTime formats a time like Time, without HTML.
func (s *Times) PlainTime(t time.Time) string { return PlainTime(t, s.Zones.Shown(), s.Now()) }

func PlainTime(t time.Time, in *time.Location, now time.Time) string {
	clocks, named, away := FormatTime(t, in, now)
	return clocks + " " + named + ", " + away
}

// Machine formats a time in RFC 3339, for hidden fields and addresses.
func (s *Times) Machine(t time.Time) string { return RFC3339(t) }

// distance formats the distance of a time from now, such as "in 5 min" or "2 h ago".
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

// Span formats a duration in its largest unit, or in two where one is too coarse.
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
