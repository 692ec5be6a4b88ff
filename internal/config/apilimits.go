package config

import (
	"net/netip"
	"time"

	"github.com/sendquota/sendquota/internal/strictyaml"
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

func (l *APILimits) settings(t *strictyaml.Table) {
	strictyaml.List(t, "per_key", "[]", "limits of each API key, at most 8", &l.PerKey, (*RateLimit).settings)
	strictyaml.List(t, "per_ip", "[]", "limits of each client address, in IPv6 of each /64, at most 8", &l.PerIP, (*RateLimit).settings)
	t.Prefixes("trusted_proxies", "[]", "addresses and networks, such as 10.0.0.0/8, of proxies whose X-Forwarded-For is believed", &l.TrustedProxies)
	t.Check(l.check)
}

func (l *APILimits) check(p strictyaml.Place) {
	for name, list := range map[string][]RateLimit{"per_key": l.PerKey, "per_ip": l.PerIP} {
		if len(list) > mostLimits {
			p.Child(name).BadKey("must have at most %d limits, has %d", mostLimits, len(list))
		}
	}
}

func (l *RateLimit) settings(t *strictyaml.Table) {
	t.OneOf("algorithm", required, "fixed_window, sliding_log, sliding_window, token_bucket or leaky_bucket", &l.Algorithm, FixedWindow, SlidingLog, SlidingWindow, TokenBucket, LeakyBucket)
	t.Int("limit", required, "requests per time span; of sliding_log at most 10000", &l.Limit, 1, manyPerSpan)
	t.Duration("per", required, "the time span, 1ms to 8760h", &l.Per, time.Millisecond, longestSpan)
	t.Int("burst", optional, "requests at once; without it, limit for token_bucket and 1, which spaces evenly, for leaky_bucket", &l.Burst, 1, manyPerSpan)
	t.Duration("precision", optional, "for sliding_window, at most per and at least a thousandth of it; without it, a sixtieth", &l.Precision, time.Millisecond, longestSpan)
	t.Bool("aligned", "false", "for fixed_window: whether its windows begin at the multiples of per since 1970, and not with a first request", &l.Aligned)
	t.OneOf("refill", optional, "for token_bucket: greedy, each token as soon as its part of per has passed, or interval, limit tokens whenever per has passed; without it, greedy", &l.Refill, Greedy, Interval)
	t.Check(l.check)
}

func (l *RateLimit) check(p strictyaml.Place) {
	limit, per := p.Child("limit"), p.Child("per")
	if l.Algorithm == SlidingLog && l.Limit > manyInLog {
		limit.BadValue("must be a whole number from 1 to %d for %s", manyInLog, SlidingLog)
	}
	if l.Per%time.Millisecond != 0 {
		per.BadValue("must be whole milliseconds")
	}
	l.checkBurst(p.Child("burst"))
	l.checkPrecision(p.Child("precision"))
	if aligned := p.Child("aligned"); l.Aligned && l.Algorithm != "" && l.Algorithm != FixedWindow {
		aligned.BadKey("is for %s only", FixedWindow)
	}
	if refill := p.Child("refill"); refill.Given() && l.Algorithm != "" && l.Algorithm != TokenBucket {
		refill.BadKey("is for %s only", TokenBucket)
	}
}

func (l *RateLimit) checkBurst(p strictyaml.Place) {
	bucket := l.Algorithm == TokenBucket || l.Algorithm == LeakyBucket
	switch {
	case l.Algorithm == "":
		return // an error by itself
	case !bucket && p.Given():
		p.BadKey("is for %s and %s only", TokenBucket, LeakyBucket)
	case bucket && p.Given() && l.Limit > 0 && float64(l.Burst)/float64(l.Limit)*float64(l.Per) > float64(longestRefill):
		p.BadValue("must be so small that it comes back within %s, at %d per %s", strictyaml.Short(longestRefill), l.Limit, strictyaml.Short(l.Per))
	case l.Algorithm == TokenBucket && l.Burst == 0:
		l.Burst = l.Limit
	case l.Algorithm == LeakyBucket && l.Burst == 0:
		l.Burst = 1
	}
}

func (l *RateLimit) checkPrecision(p strictyaml.Place) {
	switch {
	case l.Algorithm == "":
		return
	case p.Given() && l.Algorithm != SlidingWindow:
		p.BadKey("is for %s only", SlidingWindow)
	case l.Precision%time.Millisecond != 0:
		p.BadValue("must be whole milliseconds")
	case l.Per > 0 && l.Precision > l.Per:
		p.BadValue("must be at most per, which is %s", strictyaml.Short(l.Per))
	case l.Precision > 0 && l.Precision < l.Per/1000:
		p.BadValue("must be at least a thousandth of per, which is %s", strictyaml.Short(l.Per))
	}
}
