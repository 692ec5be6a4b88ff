package strictyaml

import (
	"strings"

	"github.com/sendquota/sendquota/internal/invalid"
)

// suggest lists the allowed names for an error about an unknown one, with the most similar name.
func suggest(name string, allowed []string) string {
	text := "allowed: " + strings.Join(allowed, ", ")
	if near := closest(name, allowed); near != "" {
		text += " (did you mean " + near + "?)"
	}
	return text
}

// closest returns the allowed name with the smallest edit distance, if that is at most a quarter of its length.
func closest(name string, allowed []string) string {
	best, fewest := "", len(name)
	for _, a := range allowed {
		if d := invalid.Distance(name, a); d < fewest && d <= max(1, len(a)/4) {
			best, fewest = a, d
		}
	}
	return best
}
