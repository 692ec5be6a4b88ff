package invalid

import "strings"

// Distance returns the number of steps that turn a into b: a byte is inserted, deleted or replaced, or two neighbors change places. Its
// callers suggest the allowed name that was probably meant.
func Distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1) // row[j]: from the read prefix of a to b[:j]
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before, last, row = last, row, before
		row[0] = i + 1
		for j := range len(b) {
			replaced := last[j]
			if a[i] != b[j] {
				replaced++
			}
			row[j+1] = min(replaced, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(b)]
}

// Nearest returns the known name that is most similar to a name, or "" if none is similar: at most a third of its bytes differ, and at
// least one may. Upper and lower case do not differ.
func Nearest(name string, known []string) string {
	name = strings.ToLower(name)
	nearest, least := "", len(name)
	for _, one := range known {
		allowed := max(1, len(one)/3)
		if more := len(name) - len(one); more > allowed || more < -allowed {
			continue
		}
		if d := Distance(name, strings.ToLower(one)); d < least && d <= allowed {
			nearest, least = one, d
		}
	}
	return nearest
}

// Suggested returns an error about a name, with the nearest known name if one is similar.
func Suggested(message, name string, known []string) string {
	if nearest := Nearest(name, known); nearest != "" {
		message += "; the nearest name is " + nearest
	}
	return message
}

// UnknownName returns an error with the known names, and with the nearest of them if one is similar, unless a name of a
// kind of thing is known; else "".
func UnknownName(kind, name string, known []string) string {
	for _, one := range known {
		if one == name {
			return ""
		}
	}
	all := "the " + kind + "s are: " + strings.Join(known, ", ")
	if len(known) == 0 {
		all = "there are no " + kind + "s"
	}
	if nearest := Nearest(name, known); nearest != "" {
		return "unknown " + kind + "; the nearest name is " + nearest + ". T" + all[1:]
	}
	return "unknown " + kind + "; " + all
}
