package config

import (
	"net/netip"
	"time"
)

// The algorithms of speed limits.
const (
	FixedWindow   = "fixed_window"
	SlidingLog    = "sliding_log"
	SlidingWindow = "sliding_window"
	TokenBucket   = "token_bucket"
	LeakyBucket   = "leaky_bucket"
)

// The ways to refill a TokenBucket.
const (
	Greedy   = "greedy"
	Interval = "interval"
)

// mostLimits is how long a list of limits may be: each request is held to all of
// them.
const mostLimits = 8

// manyPerSpan is the most requests or attempts that a speed limit may allow;
// of a SlidingLog, which keeps each by itself, it is manyInLog.
const (
	manyPerSpan = 1_000_000_000
	manyInLog   = 10_000
)

// longestSpan is the longest time span of a speed limit, and longestRefill how
// long the burst of a bucket may take to come back.
const (
	longestSpan   = 365 * 24 * time.Hour
	longestRefill = 10 * longestSpan
)

// APILimits are the speed limits of API callers. Of several, all must allow a
// request, or none is charged. Empty: no limit.
type APILimits struct {
	PerKey []RateLimit // each API key by itself
	PerIP  []RateLimit // each client address by itself

	// TrustedProxies are the addresses whose X-Forwarded-For is believed.
	TrustedProxies []netip.Prefix
}

// RateLimit allows Limit requests Per time.
type RateLimit struct {
	Algorithm string
	Limit     int
	Per       time.Duration
	Burst     int           // requests at once, of TokenBucket and LeakyBucket; 0 for others
	Precision time.Duration // of SlidingWindow, at most Per; 0: the algorithm's own choice
	Aligned   bool          // of FixedWindow: begin at the multiples of Per since 1970
	Refill    string        // of TokenBucket: Greedy or Interval; empty: Greedy
}

func (l *APILimits) fields() []field {
	return []field{
		{"per_key", "[]", "limits of each API key, at most 8", list(&l.PerKey)},
		{"per_ip", "[]", "limits of each client address, in IPv6 of each /64, at most 8", list(&l.PerIP)},
		{"trusted_proxies", "[]", "addresses and networks, such as 10.0.0.0/8, of proxies whose X-Forwarded-For is believed", prefixes(&l.TrustedProxies)},
	}
}

func (l *APILimits) check(p place) {
	for name, list := range map[string][]RateLimit{"per_key": l.PerKey, "per_ip": l.PerIP} {
		if len(list) > mostLimits {
			p.child(name).refuse("must have at most %d limits, has %d", mostLimits, len(list))
		}
	}
}

func (l *RateLimit) fields() []field {
	return []field{
		{"algorithm", required, "fixed_window, sliding_log, sliding_window, token_bucket or leaky_bucket", oneOf(&l.Algorithm, FixedWindow, SlidingLog, SlidingWindow, TokenBucket, LeakyBucket)},
		{"limit", required, "requests per time span; of sliding_log at most 10000", integer(&l.Limit, 1, manyPerSpan)},
		{"per", required, "the time span, 1ms to 8760h", duration(&l.Per, time.Millisecond, longestSpan)},
		{"burst", optional, "requests at once; without it, limit for token_bucket and 1, which spaces evenly, for leaky_bucket", integer(&l.Burst, 1, manyPerSpan)},
		{"precision", optional, "for sliding_window, at most per and at least a thousandth of it; without it, a sixtieth", duration(&l.Precision, time.Millisecond, longestSpan)},
		{"aligned", "false", "for fixed_window: whether its windows begin at the multiples of per since 1970, and not with a first request", boolean(&l.Aligned)},
		{"refill", optional, "for token_bucket: greedy, each token as soon as its part of per has passed, or interval, limit tokens whenever per has passed; without it, greedy", oneOf(&l.Refill, Greedy, Interval)},
	}
}

func (l *RateLimit) check(p place) {
	limit, per := p.child("limit"), p.child("per")
	if l.Algorithm == SlidingLog && l.Limit > manyInLog {
		limit.fault("must be a whole number from 1 to %d for %s", manyInLog, SlidingLog)
	}
	if l.Per%time.Millisecond != 0 {
		per.fault("must be whole milliseconds")
	}
	l.checkBurst(p.child("burst"))
	l.checkPrecision(p.child("precision"))
	if aligned := p.child("aligned"); l.Aligned && l.Algorithm != "" && l.Algorithm != FixedWindow {
		aligned.refuse("is for %s only", FixedWindow)
	}
	if refill := p.child("refill"); refill.given() && l.Algorithm != "" && l.Algorithm != TokenBucket {
		refill.refuse("is for %s only", TokenBucket)
	}
}

func (l *RateLimit) checkBurst(p place) {
	bucket := l.Algorithm == TokenBucket || l.Algorithm == LeakyBucket
	switch {
	case l.Algorithm == "":
		return // at fault itself
	case !bucket && p.given():
		p.refuse("is for %s and %s only", TokenBucket, LeakyBucket)
	case bucket && p.given() && l.Limit > 0 && float64(l.Burst)/float64(l.Limit)*float64(l.Per) > float64(longestRefill):
		p.fault("must be so small that it comes back within %s, at %d per %s", short(longestRefill), l.Limit, short(l.Per))
	case l.Algorithm == TokenBucket && l.Burst == 0:
		l.Burst = l.Limit
	case l.Algorithm == LeakyBucket && l.Burst == 0:
		l.Burst = 1
	}
}

func (l *RateLimit) checkPrecision(p place) {
	switch {
	case l.Algorithm == "":
		return
	case p.given() && l.Algorithm != SlidingWindow:
		p.refuse("is for %s only", SlidingWindow)
	case l.Precision%time.Millisecond != 0:
		p.fault("must be whole milliseconds")
	case l.Per > 0 && l.Precision > l.Per:
		p.fault("must be at most per, which is %s", short(l.Per))
	case l.Precision > 0 && l.Precision < l.Per/1000:
		p.fault("must be at least a thousandth of per, which is %s", short(l.Per))
	}
}
