package strictyaml

import "strings"

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
		if d := distance(name, a); d < fewest && d <= max(1, len(a)/4) {
			best, fewest = a, d
		}
	}
	return best
}

// distance is Levenshtein's: how many bytes must be put in, taken out or replaced to make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1) // row[j] is the distance from the part of a read so far to b[:j]
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
