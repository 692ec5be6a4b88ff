package zone

import "time"

// Hours are the same hours of some days, by the clocks of a zone: From is one of them and Until is not. Where From is
// not before Until, they go on over midnight. In an hour that comes twice, they come twice.
type Hours struct {
	Zone        *time.Location
	From, Until time.Duration // since midnight, on the clocks; at most 24 hours
	Days        Days          // on which they begin
}

// Days is a set of days of the week. The zero value has none.
type Days uint8

// EveryDay has all of them.
const EveryDay Days = 1<<7 - 1

// Add returns the set with one more day.
func (d Days) Add(day time.Weekday) Days { return d | 1<<day }

// has reports whether a day is in the set.
func (d Days) has(day time.Weekday) bool { return d&(1<<day) != 0 }

// Longest is how far one booking can matter to another because of the hours: they do not look at bookings.
func (h Hours) Longest() time.Duration { return 0 }

// Around returns the time [from, until) around t that lies inside of the hours, or outside of them, as t does. It ends
// eight days from t at the latest, as if something were to change there.
func (h Hours) Around(t time.Time) (from, until time.Time, inside bool) {
	const far = 8 * 24 * time.Hour
	t = t.In(h.Zone)
	inside = h.covers(shown(t))
	from, until = h.piece(t)
	for t.Sub(from) < far && h.covers(shown(from.Add(-1))) == inside {
		from, _ = h.piece(from.Add(-1))
	}
	for until.Sub(t) < far && h.covers(shown(until)) == inside {
		_, until = h.piece(until)
	}
	return from, until, inside
}

// covers reports whether the hours cover a local time.
func (h Hours) covers(local time.Time) bool {
	clock, today := sinceMidnight(local), local.Weekday()
	if h.From < h.Until {
		return h.Days.has(today) && h.From <= clock && clock < h.Until
	}
	yesterday := (today + 6) % 7
	return h.Days.has(today) && h.From <= clock || h.Days.has(yesterday) && clock < h.Until
}

// piece returns a time around t, a day at most, in which nothing changes: neither do the hours begin or end, nor does a
// day, nor are the clocks moved.
func (h Hours) piece(t time.Time) (from, until time.Time) {
	clock := sinceMidnight(shown(t))
	low, high := time.Duration(0), 24*time.Hour
	for _, edge := range []time.Duration{h.From, h.Until} {
		if edge <= clock {
			low = max(low, edge)
		} else {
			high = min(high, edge)
		}
	}
	from, until = t.Add(low-clock), t.Add(high-clock)
	s := stretchAt(t)
	if from.Before(s.from) {
		from = s.from
	}
	if !s.until.IsZero() && s.until.Before(until) {
		until = s.until
	}
	return from, until
}

func sinceMidnight(local time.Time) time.Duration { return local.Sub(local.Truncate(24 * time.Hour)) }
