package recurrence

import (
	"fmt"
	"math/bits"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/sendquota/sendquota/internal/duration"
)

// anyValue is the bit that the cron parser sets for a star.
const anyValue = 1 << 63

// maxClockTimes is the maximum number of times of a day to list one by one.
const maxClockTimes = 6

// Words describes a cron expression in plain English: "at 09:00, on Monday". It is "" for an expression that [Parse]
// rejects.
func Words(expression string) string {
	s, err := Parse(expression, time.UTC, time.Now())
	if err != nil {
		return ""
	}
	if s.spec == nil {
		return "every " + duration.Each(s.every) + ", counted from when it was made"
	}
	words := clockWords(s.spec)
	for _, part := range []string{dayWords(s.spec), monthWords(s.spec)} {
		if part != "" {
			words += ", " + part
		}
	}
	return words
}

// clockWords describes the times of day.
func clockWords(s *cron.SpecSchedule) string {
	minutes, hours := values(s.Minute, 0, 59), values(s.Hour, 0, 23)
	everyHour := len(hours) == 24
	if !everyHour && len(minutes)*len(hours) <= maxClockTimes {
		var times []string
		for _, h := range hours {
			for _, m := range minutes {
				times = append(times, fmt.Sprintf("%02d:%02d", h, m))
			}
		}
		return "at " + list(times)
	}
	words := minuteWords(minutes)
	if everyHour {
		return words + map[bool]string{true: "", false: " of every hour"}[strings.HasPrefix(words, "every")]
	}
	if step := stepOf(hours, 24); step > 1 {
		return fmt.Sprintf("%s, every %d hours", words, step)
	}
	return fmt.Sprintf("%s, in the hours %s", words, ranges(hours, func(h int) string { return fmt.Sprintf("%02d", h) }))
}

func minuteWords(minutes []int) string {
	switch step := stepOf(minutes, 60); {
	case len(minutes) == 60:
		return "every minute"
	case step > 1 && len(minutes) > 1:
		return fmt.Sprintf("every %d minutes", step)
	case len(minutes) == 1:
		return fmt.Sprintf("at minute %d", minutes[0])
	}
	return "at the minutes " + ranges(minutes, func(m int) string { return fmt.Sprint(m) })
}

// stepOf returns the step of values that begin with zero and fill their range evenly; 0: they do not.
func stepOf(v []int, of int) int {
	if len(v) < 2 || v[0] != 0 || of%len(v) != 0 {
		return 0
	}
	step := of / len(v)
	for i := range v {
		if v[i] != i*step {
			return 0
		}
	}
	return step
}

// dayWords describes the days. If a day of the month and a weekday are both given, either is enough.
func dayWords(s *cron.SpecSchedule) string {
	var days, weekdays string
	if s.Dom&anyValue == 0 {
		days = "on the " + ranges(values(s.Dom, 1, 31), ordinal) + " of the month"
	}
	if s.Dow&anyValue == 0 {
		switch v := values(s.Dow, 0, 6); {
		case len(v) == 7:
		case len(v) == 5 && v[0] == 1 && v[4] == 5:
			weekdays = "from Monday to Friday"
		default:
			weekdays = "on " + ranges(v, func(d int) string { return time.Weekday(d).String() })
		}
	}
	if days != "" && weekdays != "" {
		return days + " and also " + weekdays
	}
	return days + weekdays
}

func monthWords(s *cron.SpecSchedule) string {
	v := values(s.Month, 1, 12)
	if s.Month&anyValue != 0 || len(v) == 12 {
		return ""
	}
	return "in " + ranges(v, func(m int) string { return time.Month(m).String() })
}

// values returns the numbers of a field.
func values(field uint64, low, high int) (v []int) {
	for field &^= anyValue; field != 0; field &= field - 1 {
		if n := bits.TrailingZeros64(field); n >= low && n <= high {
			v = append(v, n)
		}
	}
	return v
}

// ranges lists numbers, three or more in a row as a range.
func ranges(v []int, name func(int) string) string {
	var parts []string
	for i := 0; i < len(v); {
		end := i
		for end+1 < len(v) && v[end+1] == v[end]+1 {
			end++
		}
		if end-i >= 2 {
			parts = append(parts, name(v[i])+" to "+name(v[end]))
			i = end + 1
			continue
		}
		parts = append(parts, name(v[i]))
		i++
	}
	return list(parts)
}

// list joins parts with commas, and the last with and.
func list(parts []string) string {
	if len(parts) < 2 {
		return strings.Join(parts, "")
	}
	return strings.Join(parts[:len(parts)-1], ", ") + " and " + parts[len(parts)-1]
}

func ordinal(n int) string {
	suffix := "th"
	if n < 11 || n > 13 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return fmt.Sprint(n) + suffix
}
