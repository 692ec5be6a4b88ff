package axis

import (
	"fmt"
	"html"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sendquota/sendquota/internal/console/frame"
)

// The measures of the picture, in units of its viewBox.
const (
	Width      = 1000
	Left       = 130 // of the plot; the names of lanes stand before it
	Right      = 990
	Top        = 48 // of the first lane; dates and clocks stand above it
	LaneHeight = 30
	laneBar    = 18 // of a lane's height, what its spans take
)

// Drawing is a picture that is being drawn.
type Drawing struct {
	Axis
	Out strings.Builder
}

// SVG draws the axis. It has no style of its own but classes; what it shows is in the tables of the page, too.
func (a Axis) SVG() template.HTML {
	d := &Drawing{Axis: a}
	height := Top + LaneHeight*len(a.Lanes) + 4
	d.Add(`<svg class="axis" viewBox="0 0 %d %d" role="img" aria-labelledby="axis-title axis-desc" data-left="%d" data-right="%d">`, Width, height, Left, Right)
	d.Add(`<title id="axis-title">%s</title>`, html.EscapeString(a.Title))
	d.Add(`<desc id="axis-desc">%s</desc>`, html.EscapeString(a.summary()))
	d.TicksAndDays(height)
	for i, lane := range a.Lanes {
		d.lane(lane, Top+LaneHeight*i)
	}
	d.Moments(height)
	d.Add(`</svg>`)
	return template.HTML(d.Out.String())
}

// summary describes the axis for screen readers, with the number of marks of each lane.
func (a Axis) summary() string {
	text := "From " + a.Stamp(a.From) + " until " + a.Stamp(a.Until) + "."
	for _, lane := range a.Lanes {
		n := len(lane.Spans)
		if lane.Kind == "pushes" || lane.Kind == "sends" {
			n = len(lane.Marks)
		}
		text += " " + lane.Name + ": " + frame.Number(n) + "."
	}
	return text
}

func (a Axis) Stamp(t time.Time) string { return frame.PlainTime(t, a.Zone, a.Now) }

func (d *Drawing) Add(format string, args ...any) {
	fmt.Fprintf(&d.Out, format, args...)
	d.Out.WriteByte('\n')
}

// X returns the horizontal position of a time.
func (d *Drawing) X(t time.Time) float64 {
	part := float64(t.Sub(d.From)) / float64(d.Until.Sub(d.From))
	return Left + (Right-Left)*min(max(part, 0), 1)
}

// PX writes a place with a digit behind the point at most.
func PX(x float64) string { return strconv.FormatFloat(math.Round(x*10)/10, 'f', -1, 64) }

// inside reports whether a moment is on the axis.
func (d *Drawing) inside(t time.Time) bool { return !t.Before(d.From) && t.Before(d.Until) }

// dateWidth is the width of a date.
const dateWidth = 90

func (d *Drawing) TicksAndDays(height int) {
	if d.Now.After(d.From) {
		d.Add(`<rect class="past" x="%d" y="%d" width="%s" height="%d"/>`, Left, Top, PX(d.X(d.Now)-Left), height-Top)
	}
	d.Text("date", Left, 14, d.From.In(d.Zone).Format("Mon 2 January 2006"))
	for _, t := range d.ticks() {
		class, x := "tick", d.X(t.At)
		if t.Label == "" {
			class = "tick thin"
		}
		d.Add(`<line class="%s" x1="%s" y1="%d" x2="%s" y2="%d"/>`, class, PX(x), Top-8, PX(x), height)
		if t.Label != "" && x < Right-30 {
			d.Text("clock", x, 36, t.Label)
		}
		if t.Day != "" && x > Left+2*dateWidth && x < Right-dateWidth {
			d.Text("date", x, 14, t.Day)
		}
	}
	for _, c := range d.changes() {
		x := d.X(c.At)
		d.Add(`<line class="change" x1="%s" y1="18" x2="%s" y2="%d"/>`, PX(x), PX(x), height)
		d.Text("change", x, 24, c.Label())
	}
}

func (d *Drawing) Text(class string, x float64, y int, text string) {
	d.Add(`<text class="%s" x="%s" y="%d">%s</text>`, class, PX(x), y, html.EscapeString(text))
}

func (d *Drawing) lane(l Lane, top int) {
	d.Add(`<g class="lane lane-%s">`, l.Kind)
	d.Text("lane-name", 4, top+19, Shortened(l.Name))
	d.Add(`<line class="base" x1="%d" y1="%d" x2="%d" y2="%d"/>`, Left, top+LaneHeight-3, Right, top+LaneHeight-3)
	for _, s := range d.bars(l.Spans) {
		d.Add(`<rect class="%s" x="%s" y="%d" width="%s" height="%d"/>`, l.Kind, PX(s.from), top+5, PX(s.until-s.from), laneBar)
	}
	for _, m := range d.grouped(l.Marks) {
		d.mark(m, top+14)
	}
	d.Add(`</g>`)
}

// Shortened fits a name before the plot.
func Shortened(name string) string {
	const most = 17
	if letters := []rune(name); len(letters) > most {
		return string(letters[:most-1]) + "…"
	}
	return name
}

// bar is a span as it is drawn.
type bar struct{ from, until float64 }

// bars are the spans that can be seen: at least one unit wide, and those between which nothing would be seen as one.
func (d *Drawing) bars(spans []Span) (bars []bar) {
	spans = slices.Clone(spans)
	slices.SortFunc(spans, func(a, b Span) int { return a.From.Compare(b.From) })
	for _, s := range spans {
		if s.From.IsZero() || s.From.Before(d.From) {
			s.From = d.From
		}
		if s.Until.IsZero() || s.Until.After(d.Until) {
			s.Until = d.Until
		}
		if !s.From.Before(s.Until) {
			continue
		}
		b := bar{d.X(s.From), d.X(s.Until)}
		b.until = max(b.until, b.from+1)
		if n := len(bars); n > 0 && b.from-bars[n-1].until < 0.5 {
			bars[n-1].until = max(bars[n-1].until, b.until)
			continue
		}
		bars = append(bars, b)
	}
	return bars
}

// markGroup is a group of marks of one status that are too close to tell apart.
type markGroup struct {
	Mark
	x     float64
	count int
}

// markWidth is the minimum distance between two marks.
const markWidth = 14

// grouped are the marks that are on the axis, as they are drawn.
func (d *Drawing) grouped(marks []Mark) (groups []markGroup) {
	marks = slices.Clone(marks)
	slices.SortStableFunc(marks, func(a, b Mark) int { return a.At.Compare(b.At) })
	last := map[string]int{} // of each status, in groups
	for _, m := range marks {
		if !d.inside(m.At) {
			continue
		}
		x := d.X(m.At)
		if n, ok := last[m.Status]; ok && x-groups[n].x < markWidth {
			groups[n].count++
			groups[n].ID = ""
			groups[n].Title += "\n" + m.Title
			continue
		}
		last[m.Status] = len(groups)
		groups = append(groups, markGroup{m, x, 1})
	}
	return groups
}

// markShapes tell statuses apart without colours: paths around the point 0,0.
var markShapes = map[string]string{
	"scheduled": "m-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0", // a ring, by its class
	"sending":   "m0-6l6 6l-6 6l-6-6z",
	"sent":      "m-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0",
	"delivered": "m-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0",
	"failed":    "m-5-5l10 10m0-10l-10 10",
	"refused":   "m-5-5l10 10m0-10l-10 10",
	"unknown":   "m0-6l6 6l-6 6l-6-6z",
	"canceled":  "m-5 0h10",
	"expired":   "m-5-4h10l-5 9z",
}

func (d *Drawing) mark(m markGroup, y int) {
	id := ""
	if m.ID != "" {
		id = ` data-push="` + html.EscapeString(m.ID) + `"`
	}
	d.Add(`<path class="mark mark-%s" d="M%s %d%s"%s><title>%s</title></path>`, html.EscapeString(m.Status), PX(m.x), y, markShapes[m.Status], id, html.EscapeString(m.Title))
	if m.count > 1 {
		d.Text("count", m.x, y-7, frame.Number(m.count))
	}
}

// Moments draws now, and the cursor.
func (d *Drawing) Moments(height int) {
	if d.inside(d.Now) {
		x := PX(d.X(d.Now))
		d.Add(`<line class="now" x1="%s" y1="%d" x2="%s" y2="%d"/>`, x, Top-8, x, height)
	}
	if d.inside(d.Cursor) {
		x := PX(d.X(d.Cursor))
		d.Add(`<line class="cursor" x1="%s" y1="%d" x2="%s" y2="%d"/>`, x, Top-8, x, height)
	}
}
