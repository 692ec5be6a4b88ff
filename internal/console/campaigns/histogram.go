package campaigns

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html/template"
	"strings"

	"github.com/sendquota/sendquota/internal/console/frame"
)

// histogramBar is a bar of a histogram.
type histogramBar struct {
	Name  string
	Count int64
}

// The measures of a histogram, in units of its drawing: they scale with the page.
const (
	histogramNames  = 110 // left of the bars
	histogramBars   = 380
	histogramCounts = 70 // right of them
	histogramRow    = 26
)

// histogram draws bars, one below the other, as long as their counts.
func histogram(title string, bars []histogramBar) template.HTML {
	var most int64 = 1
	for _, b := range bars {
		most = max(most, b.Count)
	}
	const width = histogramNames + histogramBars + histogramCounts
	height := histogramRow * len(bars)
	var s strings.Builder
	fmt.Fprintf(&s, `<svg class="histogram" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="%s">`+"\n", width, height, width, height, template.HTMLEscapeString(title))
	fmt.Fprintf(&s, "<title>%s</title>\n", template.HTMLEscapeString(title))
	for i, b := range bars {
		top := i * histogramRow
		long := int(b.Count * histogramBars / most)
		if b.Count > 0 {
			long = max(long, 1) // what is there is seen
		}
		fmt.Fprintf(&s, `<text class="name" x="%d" y="%d" text-anchor="end">%s</text>`, histogramNames-8, top+18, template.HTMLEscapeString(b.Name))
		fmt.Fprintf(&s, `<rect class="bar" x="%d" y="%d" width="%d" height="%d"/>`, histogramNames, top+4, long, histogramRow-8)
		fmt.Fprintf(&s, `<text class="count" x="%d" y="%d">%s</text>`+"\n", histogramNames+long+6, top+18, frame.Number(b.Count))
	}
	s.WriteString("</svg>")
	return template.HTML(s.String())
}

// compactJSON is a value as JSON, as people may read it.
func compactJSON(v any) string {
	var text bytes.Buffer
	out := json.NewEncoder(&text)
	out.SetEscapeHTML(false)
	if err := out.Encode(v); err != nil {
		return fmt.Sprint(v)
	}
	return strings.TrimSpace(text.String())
}
