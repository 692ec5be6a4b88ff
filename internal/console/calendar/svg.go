package calendar

import (
	"fmt"
	"html"
	"html/template"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/sendquota/sendquota/internal/console/frame"
)

// The measures of a heat map, in units of its viewBox.
const (
	heatLeft   = 130 // of the first hour; the dates stand before it
	heatColumn = 34
	heatTop    = 22 // of the first day; the hours stand above it
	heatRow    = 22
	heatRight  = heatLeft + 24*heatColumn // the sums of days stand behind it
)

// SVG draws a heat map: heat is a colour and a number. It has no style of its own but classes; a table of the page has the same.
func (m *heatMap) SVG() template.HTML {
	var out strings.Builder
	add := func(format string, args ...any) {
		fmt.Fprintf(&out, format, args...)
		out.WriteByte('\n')
	}
	add(`<svg class="heat" viewBox="0 0 1000 %d" role="img" aria-labelledby="%s-title %[2]s-desc">`, heatTop+heatRow*len(m.Days)+2, m.ID)
	add(`<title id="%s-title">%s</title>`, m.ID, html.EscapeString(m.Title))
	add(`<desc id="%s-desc">%s</desc>`, m.ID, html.EscapeString(m.summary()))
	for hour := range 24 {
		add(`<text class="hour" x="%d" y="15">%02d</text>`, heatLeft+heatColumn*hour+heatColumn/2, hour)
	}
	for i, day := range m.Days {
		m.day(add, day, heatTop+heatRow*i)
	}
	add(`</svg>`)
	return template.HTML(out.String())
}

func (m *heatMap) day(add func(string, ...any), d calendarDay, top int) {
	name := d.Name()
	if odd := d.Odd(); odd != "" {
		name += ", " + odd
	}
	add(`<text class="day" x="4" y="%d">%s</text>`, top+15, name)
	add(`<rect class="blank" x="%d" y="%d" width="%d" height="%d"/>`, heatLeft, top, 24*heatColumn, heatRow-2)
	for hour, cells := range d.Columns() {
		x := heatLeft + heatColumn*hour
		if len(cells) == 0 {
			add(`<rect class="gap" x="%d" y="%d" width="%d" height="%d"><title>Skipped by a clock change.</title></rect>`, x, top, heatColumn, heatRow-2)
		}
		for i, cell := range cells {
			width := heatColumn / len(cells)
			m.cell(add, cell, x+i*width, top, width)
		}
	}
	switch n := d.Sum(); {
	case m.Suffix != "" && d.Best > 0:
		add(`<text class="sum" x="994" y="%d">%d%s</text>`, top+15, d.Best, m.Suffix)
	case m.Suffix == "" && n > 0:
		add(`<text class="sum" x="994" y="%d">%s</text>`, top+15, shortNumber(n))
	}
}

func (m *heatMap) cell(add func(string, ...any), c HourCell, x, top, width int) {
	if c.N == 0 && !c.Until().After(m.Now) {
		add(`<rect class="past" x="%d" y="%d" width="%d" height="%d"/>`, x, top, width, heatRow-2)
	}
	now := !c.From.After(m.Now) && c.Until().After(m.Now)
	if c.N > 0 {
		class, text := "heat-"+strconv.FormatInt(m.Level(c.N), 10), shortNumber(c.N)
		if c.Over {
			class, text = class+" over", "▲"+text
		}
		if width < heatColumn && utf8.RuneCountInString(text) > 2 { // the next one stands there; the title has the number
			if text = ""; c.Over {
				text = "▲"
			}
		}
		add(`<g class="%s"><title>%s %s: %s%s</title><rect x="%d" y="%d" width="%d" height="%d"/><text x="%d" y="%d">%s</text></g>`,
			class, c.From.Format("2006-01-02"), c.Clock(), frame.Number(c.N), m.Suffix, x, top, width-1, heatRow-2, x+width/2, top+14, text)
	}
	if now {
		add(`<rect class="now" x="%d" y="%d" width="%d" height="%d"/>`, x, top, width-1, heatRow-2)
	}
}

// summary describes the map for screen readers.
func (m *heatMap) summary() string {
	if len(m.Days) == 0 || len(m.Days[0].Hours) == 0 {
		return "Nothing is scheduled."
	}
	first, last := m.Days[0], m.Days[len(m.Days)-1]
	text := "By hours from " + first.Date.Format("2006-01-02") + " to " + last.Date.Format("2006-01-02") + ", " + first.Date.Location().String() + "."
	if m.Suffix == "" {
		text += " Total: " + frame.Number(m.Total()) + ", at most per hour: " + frame.Number(m.Max) + "."
	}
	return text
}
