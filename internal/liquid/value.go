package liquid

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/osteele/liquid/values"
)

// plain is a value of JSON with the numbers that expressions know.
func plain(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := strconv.Atoi(v.String()); err == nil {
			return n
		}
		if f, err := v.Float64(); err == nil && strings.ContainsAny(v.String(), ".eE") { // else it is an id, or the like
			return whole(f)
		}
		return v.String()
	case float64:
		return whole(v)
	case []any:
		all := make([]any, len(v))
		for i := range v {
			all[i] = plain(v[i])
		}
		return all
	case map[string]any:
		all := make(map[string]any, len(v))
		for name := range v {
			all[name] = plain(v[name])
		}
		return all
	}
	return v
}

// lengthOf is how many numbers are in a range, up to a number that nobody counts to.
func lengthOf(v values.Range) int {
	first, last := v.Index(0).(int), v.Index(v.Len()-1).(int) // whatever its length, which may be too large for an int
	if last < first {
		return 0
	}
	return int(min(uint64(last)-uint64(first), 1<<40)) + 1
}

// whole is a number as an int, if it is whole and not so large that it may be another one.
func whole(f float64) any {
	if f == math.Trunc(f) && math.Abs(f) < 1<<53 {
		return int(f)
	}
	return f
}

// written is a value as a message has it.
func written(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case bool:
		return strconv.FormatBool(v)
	case int:
		return strconv.Itoa(v)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case time.Time:
		return v.Format("2006-01-02 15:04:05 -0700")
	case []any:
		var all strings.Builder
		for _, one := range v {
			all.WriteString(written(one))
		}
		return all.String()
	case []string:
		return strings.Join(v, "")
	case map[string]any:
		text, _ := json.Marshal(v) // it came from JSON
		return string(text)
	case values.Range:
		if lengthOf(v) == 0 {
			return ""
		}
		return fmt.Sprintf("%d..%d", v.Index(0), v.Index(v.Len()-1))
	}
	return fmt.Sprint(v)
}
