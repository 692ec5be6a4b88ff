package config

import "time"

// The algorithms of speed limits.
const (
	FixedWindow   = "fixed_window"
	SlidingLog    = "sliding_log"
	SlidingWindow = "sliding_window"
	TokenBucket   = "token_bucket"
	LeakyBucket   = "leaky_bucket"
)

// manyPerSpan is the most requests or attempts that a speed limit may allow.
const manyPerSpan = 1_000_000_000

// APILimits are the speed limits of API callers. Of several, all must allow a
// request, or none is charged. Empty: no limit.
type APILimits struct {
	PerKey []RateLimit // each API key by itself
	PerIP  []RateLimit // each client address by itself
}

// RateLimit allows Limit requests Per time.
type RateLimit struct {
	Algorithm string
	Limit     int
	Per       time.Duration
	Burst     int           // requests at once; of TokenBucket and LeakyBucket, 0 for others
	Precision time.Duration // of SlidingWindow, at most Per; 0: the algorithm's own choice
}

func (l *APILimits) fields() []field {
	return []field{
		{"per_key", "[]", "limits of each API key", list(&l.PerKey)},
		{"per_ip", "[]", "limits of each client address", list(&l.PerIP)},
	}
}

func (l *RateLimit) fields() []field {
	return []field{
		{"algorithm", required, "fixed_window, sliding_log, sliding_window, token_bucket or leaky_bucket", oneOf(&l.Algorithm, FixedWindow, SlidingLog, SlidingWindow, TokenBucket, LeakyBucket)},
		{"limit", required, "requests per time span", integer(&l.Limit, 1, manyPerSpan)},
		{"per", required, "the time span", duration(&l.Per, 1, forever)},
		{"burst", optional, "requests at once, for token_bucket and leaky_bucket; without it, limit", integer(&l.Burst, 1, manyPerSpan)},
		{"precision", optional, "for sliding_window, at most per; without it, the algorithm's own choice", duration(&l.Precision, 1, forever)},
	}
}

func (l *RateLimit) check(p place) {
	burst, precision := p.child("burst"), p.child("precision")
	bucket := l.Algorithm == TokenBucket || l.Algorithm == LeakyBucket
	switch {
	case l.Algorithm == "":
		return // at fault itself
	case bucket && l.Burst == 0:
		l.Burst = l.Limit
	case !bucket && burst.given():
		burst.refuse("is for %s and %s only", TokenBucket, LeakyBucket)
	}
	switch {
	case precision.given() && l.Algorithm != SlidingWindow:
		precision.refuse("is for %s only", SlidingWindow)
	case l.Per > 0 && l.Precision > l.Per:
		precision.fault("must be at most per, which is %s", short(l.Per))
	}
}
