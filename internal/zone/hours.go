package zone

import "time"

// Hours are the same hours of some days, on the clocks of a zone. From is inclusive and Until exclusive. If From is not
// before Until, they span midnight. An hour that the clocks repeat is included twice.
type Hours struct {
	Zone        *time.Location
	From, Until time.Duration // since midnight, on the clocks; at most 24 hours
	Days        Days          // on which they begin
}

// Days is a set of days of the week. The zero value has none.
type Days uint8

// EveryDay contains all days.
const EveryDay Days = 1<<7 - 1

// Add returns the set with one more day.
func (d Days) Add(day time.Weekday) Days { return d | 1<<day }

// has reports whether a day is in the set.
func (d Days) has(day time.Weekday) bool { return d&(1<<day) != 0 }

// Longest returns 0: the hours do not depend on bookings.
func (h Hours) Longest() time.Duration { return 0 }

// Around returns a stretch [from, until) around t that lies entirely inside or outside the hours, like t. It ends at
// most eight days from t, even if nothing changes there.
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

// piece returns a stretch around t of at most a day without a change: the hours do not begin or end in it, nor does a
// day, nor do the clocks change.
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
