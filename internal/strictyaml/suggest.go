package strictyaml

import (
	"strings"

	"github.com/sendquota/sendquota/internal/invalid"
)

// suggest says which names are allowed in place of an unknown one, and which of them was probably meant.
func suggest(name string, allowed []string) string {
	text := "allowed: " + strings.Join(allowed, ", ")
	if near := closest(name, allowed); near != "" {
		text += " (did you mean " + near + "?)"
	}
	return text
}

// closest returns the allowed name with the fewest letters to change, if these are at most a quarter of it.
func closest(name string, allowed []string) string {
	best, fewest := "", len(name)
	for _, a := range allowed {
		if d := invalid.Distance(name, a); d < fewest && d <= max(1, len(a)/4) {
			best, fewest = a, d
		}
	}
	return best
}
