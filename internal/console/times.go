package console

import (
	"fmt"
	"html/template"
	"net/url"
	"time"
)

// Now is the moment that distances are counted from.
func (p *page) Now() time.Time { return p.c.cfg.Now() }

// written is a moment as people read it: by the clocks of a zone, with the name of the zone, and how far it is from now.
func written(t time.Time, in *time.Location, now time.Time) (clocks, named, away string) {
	shown := t.In(in)
	clocks = shown.Format("2006-01-02 15:04:05")
	if t.Nanosecond() != 0 {
		clocks = shown.Format("2006-01-02 15:04:05.000")
	}
	return clocks, zoneName(shown), distance(t.Sub(now))
}

// Time shows a moment in the chosen zone, with the name of the zone and how far it is away. A zero time is a dash.
func (p *page) Time(t time.Time) template.HTML {
	if t.IsZero() {
		return "–"
	}
	clocks, named, away := written(t, p.Zones.Shown(), p.Now())
	return timeElement(t, clocks, named, away)
}

// timeElement marks up a moment as it is written.
func timeElement(t time.Time, clocks, named, away string) template.HTML {
	return template.HTML(fmt.Sprintf(`<time datetime="%s">%s <span class="zone">%s</span> <span class="distance">%s</span></time>`,
		t.UTC().Format(time.RFC3339Nano), clocks, template.HTMLEscapeString(named), away))
}

// plainTime is a moment as Time shows it, without marks.
func (p *page) plainTime(t time.Time) string { return plainTime(t, p.Zones.Shown(), p.Now()) }

func plainTime(t time.Time, in *time.Location, now time.Time) string {
	clocks, named, away := written(t, in, now)
	return clocks + " " + named + ", " + away
}

// Machine is a moment as programs write it, for hidden fields and addresses.
func (p *page) Machine(t time.Time) string { return rfc3339(t) }

// distance says how far a moment is away, in one unit.
func distance(d time.Duration) string {
	text := span(d.Abs())
	switch {
	case d.Abs() < time.Second:
		return "now"
	case d < 0:
		return text + " ago"
	}
	return "in " + text
}

// span is a duration in its largest unit, or two where one is coarse.
func span(d time.Duration) string {
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

// typedIn is the zone of the times among the values of a form: the one that the form named when it was drawn. Without one, as in a link,
// it is the zone that the page shows.
func (p *page) typedIn(values url.Values) *time.Location {
	if in := loadZone(values.Get(zoneField)); in != nil {
		return in
	}
	return p.Zones.Shown()
}

// sentZone is the zone of the times of the form that was sent: of what [page.Value] returns.
func (p *page) sentZone() *time.Location {
	if p.r.PostForm != nil {
		return p.typedIn(p.r.PostForm)
	}
	return p.typedIn(p.r.URL.Query())
}

// FieldZone is the zone of the times in the fields of this page: the one that it shows, but that in which they were typed where they
// stand there as they were typed.
func (p *page) FieldZone() *time.Location {
	if p.r.PostForm != nil || p.Form {
		return p.sentZone()
	}
	for _, name := range []string{"at", "from", "until"} {
		at, err := p.readLocal(p.Value(name))
		if err == nil && !exactTime(p.Value(name)) && !p.fits(at, p.Zones.Shown()) {
			return p.sentZone()
		}
	}
	return p.Zones.Shown()
}

// fits reports whether a field, which shows whole seconds, can show a time in a zone: what its clocks show twice is read as one of both.
func (p *page) fits(at time.Time, in *time.Location) bool {
	again, err := p.readTime(localIn(at, in), in)
	return err == nil && again.Equal(at.Truncate(time.Second))
}

// exactTime reports whether a time is written with its offset: no zone is needed to read it.
func exactTime(written string) bool {
	_, err := time.Parse(time.RFC3339Nano, written)
	return err == nil
}

// TimeValue is what a field for a time of a filter was filled with, by the clocks of FieldZone.
func (p *page) TimeValue(name string) string {
	written, in := p.Value(name), p.FieldZone()
	at, err := p.readLocal(written)
	if err != nil || !p.fits(at, in) || !exactTime(written) && in.String() == p.sentZone().String() {
		return written
	}
	return localIn(at, in)
}

// localLayouts are how browsers write the value of a datetime-local field.
var localLayouts = []string{"2006-01-02T15:04:05.999999999", "2006-01-02T15:04"}

// readLocal reads a time of the form that was sent.
func (p *page) readLocal(value string) (time.Time, error) { return p.readTime(value, p.sentZone()) }

// readTime reads the value of a datetime-local field in a zone. A time that a clock change leaves out is an error.
func (p *page) readTime(value string, in *time.Location) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339Nano, value); err == nil {
		return t, nil
	}
	for _, layout := range localLayouts {
		t, err := time.ParseInLocation(layout, value, in)
		if err != nil {
			continue
		}
		if t.Format(layout) != value && t.Format("2006-01-02T15:04:05") != value {
			return t, fmt.Errorf("%s does not exist in %s: clocks go forward over it", value, in)
		}
		return t, nil
	}
	return time.Time{}, fmt.Errorf("%q is not a time. Write it as 2006-01-02T15:04", value)
}

// Local is a moment as the value of a datetime-local field of this page.
func (p *page) Local(t time.Time) string { return localIn(t, p.FieldZone()) }

func localIn(t time.Time, in *time.Location) string {
	if t.IsZero() {
		return ""
	}
	return t.In(in).Format("2006-01-02T15:04:05")
}
