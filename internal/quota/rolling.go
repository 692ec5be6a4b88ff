package quota

import "time"

// A run of a rolling rule consists of as many consecutive bookings as the rule has places. It is identified by the
// index of the first. A run that is shorter than the window is full: it blocks the open interval between its bounds.
// Both bounds grow from run to run, so a walk over time passes each run once.

// run returns the block of the run that begins with a booking. A booking exactly one window
// before the last booking of the run is still allowed, so the block begins a nanosecond after that time.
func (b *blocks) run(first int) block {
	last, window := first+b.places-1, b.rule.Window
	return block{from: b.at[last] - window + 1, until: b.at[first] + window, low: first, high: last + 1}
}

// nextRun is [blocks.next] of a rolling rule.
func (b *blocks) nextRun(t, end time.Duration) (block, bool) {
	window, since, until := b.rule.Window, t-b.rule.Window, end+b.rule.Window-1
	firsts, lasts := b.at, b.at[b.places-1:]
	run := b.passed
	for run < len(lasts) && lasts[run] < until {
		first, last := firsts[run], lasts[run]
		run++
		if last-first < window && first > since {
			b.passed = run
			return b.run(run - 1), true
		}
	}
	b.passed = run
	return block{}, false
}

// previousRun is [blocks.previous] of a rolling rule.
func (b *blocks) previousRun(t, end time.Duration) (block, bool) {
	at, window := b.at, b.rule.Window
	run := len(at) - b.places - b.passed
	for ; run >= 0; run-- {
		first, last := at[run], at[run+b.places-1]
		if first+window <= end {
			break
		}
		if last-first < window && last-window < t {
			b.passed = len(at) - b.places - run + 1
			return b.run(run), true
		}
	}
	b.passed = len(at) - b.places - run
	return block{}, false
}

// fullest returns the number of bookings in the fullest window that contains now. at holds the bookings near it. It
// tries the windows that begin at a booking in (now−W, now], and the one that begins now. Any other window that
// contains now can be moved later, up to one of these, without losing a booking.
func (r *Rule) fullest(at []time.Duration, now time.Duration) int {
	if len(at) == 0 || at[len(at)-1]-at[0] < r.Window {
		return len(at) // one window has them all
	}
	end := 0
	most := len(at) - before(at, now)
	for first := 0; at[first] <= now; first++ {
		for end < len(at) && at[end] < at[first]+r.Window {
			end++
		}
		most = max(most, end-first)
	}
	return most
}
