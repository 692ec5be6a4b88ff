package strictyaml

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// days is the part of a duration in days, which stands first.
var days = regexp.MustCompile(`^([+-]?)([0-9]+(?:\.[0-9]+)?)d(.*)$`)

// ParseDuration reads a duration as [time.ParseDuration] does, and days of 24 hours before all other parts: 30d, 1d12h.
func ParseDuration(text string) (time.Duration, error) {
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

// spokenUnits are the units in which people say durations.
var spokenUnits = []struct {
	name string
	is   time.Duration
}{
	{"year", 365 * 24 * time.Hour},
	{"day", 24 * time.Hour},
	{"hour", time.Hour},
	{"minute", time.Minute},
	{"second", time.Second},
	{"millisecond", time.Millisecond},
}

// Spoken writes a duration as people say it: 1 minute, 7 days, 1 hour 30 minutes.
func Spoken(d time.Duration) string {
	switch {
	case d == 0:
		return "0 seconds"
	case d < time.Millisecond:
		return d.String()
	}
	var parts []string
	for _, unit := range spokenUnits {
		n := int64(d / unit.is)
		if d -= time.Duration(n) * unit.is; n == 0 {
			continue
		}
		part := strconv.FormatInt(n, 10) + " " + unit.name
		if n != 1 {
			part += "s"
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, " ")
}
