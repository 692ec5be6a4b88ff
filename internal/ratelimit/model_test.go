package ratelimit

import (
	"math/big"
	"sort"
	"time"
)

// model is an algorithm as one would explain it, for one subject, with time in microseconds. The models share no line
// with the scripts, and nothing but these methods with each other: the rest of an answer follows from its definition.
type model interface {
	// clock sets the current time. If it is earlier than before, all later uses count as used now.
	clock(now int64)
	// free is the highest cost that is allowed at a time, not before clock's.
	free(now int64) int
	// take uses a cost that is allowed.
	take(now int64, cost int)
	// refund gives back what was used, the last use first.
	refund(now int64, cost int)
}

func modelOf(l Limit) model {
	per, l := l.Per.Microseconds(), l.WithDefaults()
	switch {
	case l.Aligned:
		return &alignedModel{limit: l.Limit, per: per}
	case l.Algorithm == FixedWindow:
		return &fixedModel{limit: l.Limit, per: per}
	case l.Algorithm == SlidingLog:
		return &slidingModel{limit: l.Limit, per: per}
	case l.Algorithm == SlidingWindow:
		return &slidingModel{limit: l.Limit, per: per, width: l.Precision.Microseconds()}
	case l.Refill == Interval:
		return &intervalModel{limit: l.Limit, per: per, burst: l.Burst}
	case l.Algorithm == TokenBucket:
		return &tokenModel{rate: big.NewRat(int64(l.Limit), per), burst: whole(int64(l.Burst)), tokens: whole(int64(l.Burst))}
	}
	return &gcraModel{interval: big.NewRat(per, int64(l.Limit)), burst: whole(int64(l.Burst)), tat: whole(0)}
}

// resultOf is the answer that a model gives after clock.
func resultOf(m model, l Limit, now int64, cost int, charge bool) Result {
	r := Result{Allowed: cost <= m.free(now), Limit: l.WithDefaults().capacity()}
	if cost > r.Limit {
		r.RetryAfter = Never
	} else {
		r.RetryAfter = until(m, now, cost)
	}
	if charge {
		m.take(now, cost)
	}
	r.Remaining, r.ResetAfter = m.free(now), until(m, now, r.Limit)
	return r
}

// until is the shortest time after which a cost is allowed. More time never takes room away, so it can be halved.
func until(m model, now int64, cost int) time.Duration {
	most := 1
	for m.free(now+int64(most)) < cost {
		most *= 2
	}
	return micros(int64(sort.Search(most, func(w int) bool { return m.free(now+int64(w)) >= cost })))
}

// fixedModel counts from a first use on.
type fixedModel struct {
	limit     int
	per, ends int64
	used      int
}

func (m *fixedModel) clock(now int64) { m.ends = min(m.ends, now+m.per) }

func (m *fixedModel) free(now int64) int {
	if now >= m.ends {
		return m.limit
	}
	return m.limit - m.used
}

func (m *fixedModel) take(now int64, cost int) {
	if now >= m.ends {
		m.ends, m.used = now+m.per, 0
	}
	m.used += cost
}

func (m *fixedModel) refund(now int64, cost int) {
	if m.used -= cost; m.used <= 0 || now >= m.ends {
		m.ends, m.used = 0, 0
	}
}

// alignedModel counts in the windows of the clock.
type alignedModel struct {
	limit       int
	per, window int64
	used        int
}

func (m *alignedModel) clock(now int64) { m.window = min(m.window, now/m.per) }

func (m *alignedModel) free(now int64) int {
	if now/m.per == m.window {
		return m.limit - m.used
	}
	return m.limit
}

func (m *alignedModel) take(now int64, cost int) {
	m.used = m.limit - m.free(now) + cost
	m.window = now / m.per
}

func (m *alignedModel) refund(now int64, cost int) {
	m.used = max(0, m.limit-m.free(now)-cost)
	m.window = now / m.per
}

// slidingModel keeps all that was ever used, unit by unit or nearly so. Where there are steps, it counts as if it had
// been used at the end of its step.
type slidingModel struct {
	limit      int
	per, width int64
	at         []int64
	cost       []int
}

func (m *slidingModel) clock(now int64) {
	m.forget(now)
	for i := range m.at {
		m.at[i] = min(m.at[i], now)
	}
}

// forget what does not count any more: it does not come back with the clock.
func (m *slidingModel) forget(now int64) {
	kept := slidingModel{limit: m.limit, per: m.per, width: m.width}
	for i := range m.at {
		if m.counts(i, now) && m.cost[i] > 0 {
			kept.at, kept.cost = append(kept.at, m.at[i]), append(kept.cost, m.cost[i])
		}
	}
	*m = kept
}

func (m *slidingModel) counts(i int, now int64) bool {
	at := m.at[i]
	if m.width > 0 {
		at = (at/m.width + 1) * m.width
	}
	return now-at < m.per
}

func (m *slidingModel) free(now int64) int {
	free := m.limit
	for i := range m.at {
		if m.counts(i, now) {
			free -= m.cost[i]
		}
	}
	return free
}

func (m *slidingModel) take(now int64, cost int) {
	m.at, m.cost = append(m.at, now), append(m.cost, cost)
}

func (m *slidingModel) refund(now int64, cost int) {
	for i := len(m.at) - 1; i >= 0 && cost > 0; i-- {
		back := min(cost, m.cost[i])
		m.cost[i], cost = m.cost[i]-back, cost-back
	}
	m.forget(now)
}

// intervalModel gets all tokens of an interval at its end.
type intervalModel struct {
	limit, burst int
	per, next    int64
	missing      int
}

func (m *intervalModel) clock(now int64) { m.next = min(m.next, now+m.per) }

// at lets one interval after the other pass.
func (m intervalModel) at(now int64) intervalModel {
	for m.missing > 0 && m.next <= now {
		m.missing, m.next = max(0, m.missing-m.limit), m.next+m.per
	}
	return m
}

func (m *intervalModel) free(now int64) int { return m.burst - m.at(now).missing }

func (m *intervalModel) take(now int64, cost int) {
	if *m = m.at(now); m.missing == 0 {
		m.next = now + m.per
	}
	m.missing += cost
}

func (m *intervalModel) refund(now int64, cost int) {
	*m = m.at(now)
	m.missing = max(0, m.missing-cost)
}

// tokenModel is the fill level of a bucket when tokens were last taken out.
type tokenModel struct {
	rate, burst, tokens *big.Rat
	last                int64
}

func (m *tokenModel) level(now int64) *big.Rat {
	level := new(big.Rat).Mul(m.rate, whole(now-m.last))
	level.Add(level, m.tokens)
	return lesser(level, m.burst)
}

func (m *tokenModel) clock(now int64) {
	if m.level(now).Sign() < 0 {
		m.tokens, m.last = whole(0), now
	}
}

func (m *tokenModel) refund(now int64, cost int) {
	m.tokens, m.last = new(big.Rat).Add(m.level(now), whole(int64(cost))), now
	if m.tokens.Cmp(m.burst) >= 0 { // the limit is fully replenished
		m.tokens, m.last = m.burst, 0
	}
}

func (m *tokenModel) free(now int64) int { return max(0, floor(m.level(now))) }

func (m *tokenModel) take(now int64, cost int) {
	m.tokens, m.last = new(big.Rat).Sub(m.level(now), whole(int64(cost))), now
}

// gcraModel is the theoretical arrival time of the next cell.
type gcraModel struct{ interval, burst, tat *big.Rat }

func (m *gcraModel) clock(now int64) {
	full := new(big.Rat).Mul(m.interval, m.burst)
	m.tat = lesser(m.tat, full.Add(full, whole(now)))
}

func (m *gcraModel) refund(now int64, cost int) {
	back := new(big.Rat).Mul(m.interval, whole(int64(cost)))
	if back.Sub(m.behind(now), back).Sign() <= 0 {
		m.tat = whole(0) // the limit is fully replenished
		return
	}
	m.tat = back.Add(back, whole(now))
}

func (m *gcraModel) behind(now int64) *big.Rat {
	behind := new(big.Rat).Sub(m.tat, whole(now))
	if behind.Sign() < 0 {
		return whole(0)
	}
	return behind
}

func (m *gcraModel) free(now int64) int {
	used := new(big.Rat).Quo(m.behind(now), m.interval)
	return max(0, floor(new(big.Rat).Sub(m.burst, used)))
}

func (m *gcraModel) take(now int64, cost int) {
	tat := new(big.Rat).Mul(m.interval, whole(int64(cost)))
	m.tat = tat.Add(tat, m.behind(now)).Add(tat, whole(now))
}

func whole(n int64) *big.Rat { return big.NewRat(n, 1) }

func lesser(a, b *big.Rat) *big.Rat {
	if a.Cmp(b) < 0 {
		return a
	}
	return b
}

// floor rounds down, also below zero.
func floor(r *big.Rat) int {
	return int(new(big.Int).Div(r.Num(), r.Denom()).Int64())
}
