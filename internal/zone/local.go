package zone

import (
	"errors"
	"strings"
	"time"
)

// errLocal describes the format of a local time.
var errLocal = errors.New("must be a local time without a zone or a fraction, like 2026-12-01T09:00:00")

// ParseLocal reads a local time, such as 2026-12-01T09:00:00; the seconds are optional. It returns it in UTC, as
// [Instant] expects.
func ParseLocal(text string) (time.Time, error) {
	for _, layout := range []string{"2006-01-02T15:04:05", "2006-01-02T15:04"} {
		// Package time accepts a fraction, and single digits of an hour, that the layout does not have.
		if t, err := time.Parse(layout, text); err == nil && len(text) == len(layout) && !strings.ContainsAny(text, ".,") {
			return t, nil
		}
	}
	return time.Time{}, errLocal
}

// Instant returns the first instant when the clocks of a zone show a local time or a later one. local is that time in
// UTC.
func Instant(local time.Time, zone *time.Location) time.Time {
	t := local.Add(-24 * time.Hour).In(zone) // no clock was ever a day ahead of UTC
	for {
		s := stretchAt(t)
		at := local.Add(-s.offset).In(zone)
		if at.Before(s.from) { // it was skipped
			return s.from
		}
		if s.until.IsZero() || at.Before(s.until) {
			return at
		}
		t = s.until
	}
}

// Instants returns every instant when the clocks of a zone show a local time, in order: one, or two if the clocks go
// back over it. For a skipped time it returns the [Instant].
func Instants(local time.Time, zone *time.Location) []time.Time {
	all := []time.Time{Instant(local, zone)}
	if !shown(all[0]).Equal(local) {
		return all
	}
	for s := stretchAt(all[0]); !s.until.IsZero() && s.until.Sub(all[0]) < Moved; {
		s = stretchAt(s.until)
		if at := local.Add(-s.offset).In(zone); !at.Before(s.from) && (s.until.IsZero() || at.Before(s.until)) {
			all = append(all, at)
		}
	}
	return all
}

// Moved is the largest possible difference between clocks: they are between 12 hours behind UTC and 14 ahead of it.
const Moved = 26 * time.Hour

// Shown returns the wall clock time of a zone at an instant, in UTC.
func Shown(at time.Time, zone *time.Location) time.Time { return shown(at.In(zone)) }

// stretch is a period [from, until) without a clock change in a zone. A zero bound is unlimited.
type stretch struct {
	from, until time.Time
	offset      time.Duration // of the clocks, ahead of UTC
}

// stretchAt returns the stretch that t lies in, in t's own zone. A zone can change its name, or whether it counts as
// summer time, without a clock change.
func stretchAt(t time.Time) stretch {
	offset := offsetAt(t)
	from, until := t.ZoneBounds()
	for !from.IsZero() && offsetAt(from.Add(-1)) == offset {
		from, _ = from.Add(-1).ZoneBounds()
	}
	for !until.IsZero() && offsetAt(until) == offset {
		_, until = until.ZoneBounds()
	}
	return stretch{from, until, offset}
}

func offsetAt(t time.Time) time.Duration {
	_, seconds := t.Zone()
	return time.Duration(seconds) * time.Second
}

// shown returns the wall clock time at t, in UTC.
func shown(t time.Time) time.Time { return t.UTC().Add(offsetAt(t)) }
