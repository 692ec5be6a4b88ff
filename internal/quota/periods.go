package quota

import "time"

// A period of a rule is full if it has as many bookings as the rule has places. A full period is blocked from its first
// instant up to its end, exclusive. Quiet hours have no places, and are always full.

// around finds the bounds of the period that a time lies in, or of the gap between two periods.
func (b *blocks) around(t time.Time) {
	from, until, inside := b.rule.Periods.Around(t)
	b.period.from, b.period.until, b.inside = since(b.origin, from), since(b.origin, until), inside
}

// fullPeriod returns the period or gap that a time lies in, and whether it is a full period.
func (b *blocks) fullPeriod(t time.Duration) (p block, full bool) {
	if t < b.period.from || t >= b.period.until {
		b.around(b.origin.Add(t))
		if !b.rule.Quiet {
			b.period.low = before(b.at, b.period.from)
			b.period.high = b.period.low + before(b.at[b.period.low:], b.period.until)
		}
	}
	return b.period, b.inside && b.period.high-b.period.low >= b.places
}

// nextPeriod is [blocks.next] of a rule with periods.
func (b *blocks) nextPeriod(t, end time.Duration) (block, bool) {
	if b.passed > 0 {
		t = max(t, b.period.until)
	}
	for t < end {
		p, full := b.fullPeriod(t)
		if full {
			b.passed++
			return p, true
		}
		t = max(t+1, p.until)
		if !b.rule.Quiet { // a period without bookings is not full; the period of the next one may begin before end
			if p.high == len(b.at) {
				break
			}
			t = max(t, min(b.at[p.high], end-1))
		}
	}
	return block{}, false
}

// previousPeriod is [blocks.previous] of a rule with periods.
func (b *blocks) previousPeriod(t, end time.Duration) (block, bool) {
	if b.passed > 0 {
		t = min(t, b.period.from-1)
	}
	for t >= end {
		p, full := b.fullPeriod(t)
		if full {
			b.passed++
			return p, true
		}
		t = min(t, p.from) - 1
		if !b.rule.Quiet {
			if p.low == 0 {
				break
			}
			t = min(t, max(b.at[p.low-1], end))
		}
	}
	return block{}, false
}
