package rest

import (
	"errors"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sendquota/sendquota/internal/zone"
)

// TimeExample is a time in examples and errors.
const TimeExample = "2026-12-01T09:00:00Z"

// Moment reads a time with a zone.
func Moment[T any](set func(*T, time.Time)) Value[T] {
	v := Scalar(set, huma.Schema{Type: huma.TypeString, Format: "date-time"}, parseTime)
	v.mend = restorePlus
	return v
}

// restorePlus restores the plus sign of a zone, which a query without escapes turns into a space.
func restorePlus(text string) string {
	if n := len(text) - len("+00:00"); n > 0 && text[n] == ' ' {
		return text[:n] + "+" + text[n+1:]
	}
	return text
}

// parseTime reads a time of RFC 3339 in the years 1 to 9999 of UTC, strictly. It returns the error as a text, or "". It
// never returns the zero time, which means an absent one.
func parseTime(s string) (time.Time, string) {
	t, err := parseRFC3339(s)
	if err != nil {
		if _, err := parseRFC3339(s + "Z"); err == nil {
			return time.Time{}, "needs a time zone, like " + TimeExample
		}
		return time.Time{}, "must be a time like " + TimeExample
	}
	if t = t.UTC(); t.Year() < 1 || t.Year() > 9999 {
		return time.Time{}, "must lie in the years 1 to 9999"
	}
	if t.IsZero() {
		t = t.Add(time.Nanosecond)
	}
	return t, ""
}

// parseRFC3339 accepts a lower-case t and z, like the RFC, but rejects some texts that time.Parse accepts: 9:00 for 09:00, a comma
// for a point, a zone of +25:00.
func parseRFC3339(s string) (time.Time, error) {
	s = strings.ToUpper(s)
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return t, err
	}
	if s[13] != ':' || strings.Contains(s, ",") {
		return t, errSloppy
	}
	if zone := s[len(s)-len("00:00"):]; s[len(s)-1] != 'Z' && (zone[:2] > "23" || zone[3:] > "59") {
		return t, errSloppy
	}
	return t, nil
}

var errSloppy = errors.New("not quite RFC 3339")

// Stamp writes a time in UTC, to the microsecond, which is the precision of Postgres. Send times have whole
// seconds.
func Stamp(t time.Time) string {
	return t.UTC().Truncate(time.Microsecond).Format(time.RFC3339Nano) // twice as fast as another layout
}

// StampLike is [Stamp] for a time that often equals another one with a known stamp.
func StampLike(t, other time.Time, stamped string) string {
	if t.Equal(other) {
		return stamped
	}
	return Stamp(t)
}

// LocalExample is a local time in examples.
const LocalExample = "2026-12-01T09:00:00"

// LocalMoment reads a local time without a zone.
func LocalMoment[T any](set func(*T, time.Time)) Value[T] {
	schema := huma.Schema{Type: huma.TypeString, Pattern: `^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(:[0-9]{2})?$`}
	return Scalar(set, schema, func(text string) (time.Time, string) {
		t, err := zone.ParseLocal(text)
		switch {
		case err != nil:
			return t, err.Error()
		case t.Year() < 2:
			return t, "must lie in the years 2 to 9999"
		}
		return t, ""
	})
}

// Ceil returns the number of units in a time span, rounded up, so that a caller that waits for it is not too early.
func Ceil(d, unit time.Duration) int64 { return int64((d + unit - 1) / unit) }
