package ratelimit

import (
	"math/big"
	"sort"
	"time"
)

// model is an algorithm as one would explain it, for one subject, with time in
// microseconds. The models share no line with the scripts, and nothing but
// free and take with each other: the rest of an answer follows from its
// definition.
type model interface {
	// free is the highest cost that is allowed at a time.
	free(now int64) int
	// take uses a cost that is allowed.
	take(now int64, cost int)
}

func modelOf(l Limit) model {
	per, l := l.Per.Microseconds(), l.WithDefaults()
	switch l.Algorithm {
	case FixedWindow:
		return &fixedModel{limit: l.Limit, per: per}
	case SlidingLog:
		return &slidingModel{limit: l.Limit, per: per}
	case SlidingWindow:
		return &slidingModel{limit: l.Limit, per: per, width: l.Precision.Microseconds()}
	case TokenBucket:
		return &tokenModel{rate: big.NewRat(int64(l.Limit), per), burst: whole(int64(l.Burst)), tokens: whole(int64(l.Burst))}
	}
	return &gcraModel{interval: big.NewRat(per, int64(l.Limit)), burst: whole(int64(l.Burst)), tat: whole(0)}
}

// resultOf is the answer that a model gives.
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

// until is the shortest time after which a cost is allowed. More time never
// takes room away, so it can be halved.
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

// slidingModel keeps all that was ever used. Where there are buckets, it
// counts as if it had been used at the end of its bucket.
type slidingModel struct {
	limit      int
	per, width int64
	at         []int64
	cost       []int
}

func (m *slidingModel) free(now int64) int {
	free := m.limit
	for i, at := range m.at {
		if m.width > 0 {
			at = (at/m.width + 1) * m.width
		}
		if now-at < m.per {
			free -= m.cost[i]
		}
	}
	return free
}

func (m *slidingModel) take(now int64, cost int) {
	m.at, m.cost = append(m.at, now), append(m.cost, cost)
}

// tokenModel is how full a bucket was when tokens were last taken out.
type tokenModel struct {
	rate, burst, tokens *big.Rat
	last                int64
}

func (m *tokenModel) level(now int64) *big.Rat {
	level := new(big.Rat).Mul(m.rate, whole(now-m.last))
	level.Add(level, m.tokens)
	return lesser(level, m.burst)
}

func (m *tokenModel) free(now int64) int { return max(0, floor(m.level(now))) }

func (m *tokenModel) take(now int64, cost int) {
	m.tokens, m.last = new(big.Rat).Sub(m.level(now), whole(int64(cost))), now
}

// gcraModel is the theoretical arrival time of the next cell.
type gcraModel struct{ interval, burst, tat *big.Rat }

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
