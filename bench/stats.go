package main

import (
	"fmt"
	"slices"
	"time"
)

// pair is what two systems did in one round.
type pair struct{ ours, theirs float64 }

// pairs are the rounds of a comparison.
type pairs []pair

func (ps pairs) ratios() (median, least, most float64) {
	all := ps.each(func(p pair) float64 { return p.ours / p.theirs })
	return quantile(all, 0.5), slices.Min(all), slices.Max(all)
}

func (ps pairs) ours() float64 { return quantile(ps.each(func(p pair) float64 { return p.ours }), 0.5) }
func (ps pairs) theirs() float64 {
	return quantile(ps.each(func(p pair) float64 { return p.theirs }), 0.5)
}

func (ps pairs) each(f func(pair) float64) []float64 {
	all := make([]float64, len(ps))
	for i, p := range ps {
		all[i] = f(p)
	}
	return all
}

// quantile returns the value below which the share q lies: q 0.5 is the
// median. Of an even number of values, the lower one of the middle.
func quantile[T float64 | time.Duration](values []T, q float64) T {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[int(q*float64(len(sorted)-1))]
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
