// Package duration parses durations with days, such as 30d, and formats them in words, such as 7 days.
package duration

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// days matches the leading part of a duration in days.
var days = regexp.MustCompile(`^([+-]?)([0-9]+(?:\.[0-9]+)?)d(.*)$`)

// Parse parses a duration as [time.ParseDuration] does, and days of 24 hours before all other parts: 30d, 1d12h.
func Parse(text string) (time.Duration, error) {
	m := days.FindStringSubmatch(text)
	if m == nil {
		return time.ParseDuration(text)
	}
	n, err := strconv.ParseFloat(m[2], 64)
	if err != nil {
		return 0, err
	}
	hours := strconv.FormatFloat(24*n, 'f', -1, 64) + "h"
	if strings.ContainsAny(m[3], "+-d") {
		return time.ParseDuration(text) // which refuses it
	}
	return time.ParseDuration(m[1] + hours + m[3])
}

// units are the units of [Words], the longest first.
var units = []struct {
	name string
	is   time.Duration
}{
	{"year", 365 * 24 * time.Hour},
	{"day", 24 * time.Hour},
	{"hour", time.Hour},
	{"minute", time.Minute},
	{"second", time.Second},
	{"millisecond", time.Millisecond},
	{"microsecond", time.Microsecond},
	{"nanosecond", time.Nanosecond},
}

// Words formats a duration in words: 1 minute, 7 days, 1 hour and 30 minutes, 2 days, 3 hours and 1 second.
func Words(d time.Duration) string {
	var parts []string
	for _, unit := range units {
		n := int64(d / unit.is)
		if d -= time.Duration(n) * unit.is; n == 0 {
			continue
		}
		part := strconv.FormatInt(n, 10) + " " + unit.name
		if n != 1 && n != -1 {
			part += "s"
		}
		parts = append(parts, part)
	}
	switch last := len(parts) - 1; last {
	case -1:
		return "0 seconds"
	case 0:
		return parts[0]
	default:
		return strings.Join(parts[:last], ", ") + " and " + parts[last]
	}
}

// Each formats a duration for use after "each", "every" or "per": minute, 5 minutes.
func Each(d time.Duration) string {
	words := Words(d)
	if one, is := strings.CutPrefix(words, "1 "); is && !strings.Contains(one, " ") {
		return one
	}
	return words
}
