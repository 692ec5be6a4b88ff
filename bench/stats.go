package main

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sendquota/sendquota/internal/testenv"
)

// pairs holds the results of two systems in the rounds of a comparison.
type pairs struct{ ours, theirs []float64 }

func (p *pairs) add(ours, theirs float64) {
	p.ours, p.theirs = append(p.ours, ours), append(p.theirs, theirs)
}

func (p pairs) ratios() (median, least, most float64) {
	all := make([]float64, len(p.ours))
	for i, ours := range p.ours {
		all[i] = ours / p.theirs[i]
	}
	return testenv.Quantile(all, 0.5), slices.Min(all), slices.Max(all)
}

// count writes a number the way that people read it: 12 345.
func count(n float64) string {
	text := fmt.Sprintf("%.0f", n)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + " " + text[at:]
	}
	return text
}

// ms writes a time in milliseconds.
func ms(d time.Duration) string {
	if d < 10*time.Millisecond {
		return fmt.Sprintf("%.1f ms", float64(d)/1e6)
	}
	return count(float64(d)/1e6) + " ms"
}

// groupMetric matches the services' metrics about calls that share a transaction or a pipeline.
var groupMetric = regexp.MustCompile(`(?m)^sendquota_group_size_(sum|count)\{kind="(\w+)"\} (\S+)$`)

// groups returns the mean number of calls that shared a transaction or a pipeline in a service.
func (l *lab) groups(addr string) string {
	var kinds []string
	sums, counts := map[string]float64{}, map[string]float64{}
	for _, m := range groupMetric.FindAllStringSubmatch(get(l, "http://"+addr+"/metrics"), -1) {
		value, err := strconv.ParseFloat(m[3], 64)
		l.check(err)
		if m[1] == "sum" {
			sums[m[2]] = value
			kinds = append(kinds, m[2])
		} else {
			counts[m[2]] = value
		}
	}
	var parts []string
	for _, kind := range kinds {
		parts = append(parts, fmt.Sprintf("%s %.1f", kind, sums[kind]/counts[kind]))
	}
	return strings.Join(parts, ", ")
}
