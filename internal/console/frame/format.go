package frame

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/sendquota/sendquota/internal/duration"
)

// SpanWords returns a time span of the API in words.
func SpanWords(text string) string {
	d, err := duration.Parse(text)
	if err != nil {
		return text
	}
	return duration.Words(d)
}

// Number formats an integer with spaces between thousands: 1 234 567.
func Number(n any) string {
	digits := fmt.Sprint(n)
	sign := ""
	if strings.HasPrefix(digits, "-") {
		sign, digits = "−", digits[1:]
	}
	var groups []string
	for len(digits) > 3 {
		groups = append([]string{digits[len(digits)-3:]}, groups...)
		digits = digits[:len(digits)-3]
	}
	return sign + strings.Join(append([]string{digits}, groups...), " ")
}

// Percent returns a part of a whole in percent, or a dash if the whole is zero.
func Percent(part, whole int64) string {
	if whole == 0 {
		return "–"
	}
	return strconv.FormatFloat(100*float64(part)/float64(whole), 'f', 1, 64) + " %"
}

// PathPart escapes a segment of a path.
func PathPart(text string) string { return strings.ReplaceAll(url.QueryEscape(text), "+", "%20") }

// CountWords returns a number with its noun in the singular or plural.
func CountWords(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return Number(n) + " " + many
}
