package ratelimit

import (
	"math"
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/sendquota/sendquota/internal/duration"
	"github.com/sendquota/sendquota/internal/invalid"
)

// Algorithm is the name of an algorithm. The package's documentation compares them.
type Algorithm string

// The algorithms.
const (
	FixedWindow   Algorithm = "fixed_window"
	SlidingLog    Algorithm = "sliding_log"
	SlidingWindow Algorithm = "sliding_window"
	TokenBucket   Algorithm = "token_bucket"
	LeakyBucket   Algorithm = "leaky_bucket"
)

// Algorithms lists all of them.
var Algorithms = []Algorithm{FixedWindow, SlidingLog, SlidingWindow, TokenBucket, LeakyBucket}

// Refill is the way a TokenBucket gets its tokens.
type Refill string

// The ways to refill a TokenBucket.
const (
	Greedy   Refill = "greedy"   // each token as soon as its part of Per has passed
	Interval Refill = "interval" // Limit tokens at once, whenever Per has passed since a use found it full
)

// Refills lists all of them, the default first.
var Refills = []Refill{Greedy, Interval}

// bucket reports whether a has a burst.
func (a Algorithm) bucket() bool { return a == TokenBucket || a == LeakyBucket }

// The bounds of limits.
const (
	MaxLimit      = 1_000_000_000         // units of cost
	MaxLogLimit   = 10_000                // units of cost of SlidingLog, which may store each separately
	MinPer        = time.Millisecond      // also of Precision
	MaxPer        = 365 * 24 * time.Hour  //
	MaxRefill     = 3650 * 24 * time.Hour // how long an emptied bucket may take to fill again
	MaxPrecisions = 1000                  // in Per, each stored separately
)

// Limit is the amount that may be used in a time. Two limits that differ in any field are independent: a use of one
// does not count for the other.
type Limit struct {
	Algorithm Algorithm
	Limit     int           // units of cost, 1 to MaxLimit; of SlidingLog to MaxLogLimit
	Per       time.Duration // whole milliseconds, MinPer to MaxPer
	// Burst is the amount that may be used at once, for TokenBucket and LeakyBucket only, 1 to MaxLimit. 0: Limit for a
	// TokenBucket, which starts full, and 1 for a LeakyBucket, which then spaces evenly.
	Burst int
	// Precision is the width of SlidingWindow's steps: whole milliseconds, at most Per and at least Per /
	// MaxPrecisions. 0: a sixtieth of Per, rounded up to a millisecond.
	Precision time.Duration
	// Aligned, for FixedWindow only, makes windows begin at multiples of Per since 1970 instead of at a first use.
	Aligned bool
	// Refill is the way a TokenBucket, and only this, gets its tokens. "": Greedy.
	Refill Refill
}

// WithDefaults returns l with its defaults filled in. The limiter does so itself.
func (l Limit) WithDefaults() Limit {
	if l.Algorithm == TokenBucket && l.Refill == "" {
		l.Refill = Greedy
	}
	switch {
	case l.Algorithm == TokenBucket && l.Burst == 0:
		l.Burst = l.Limit
	case l.Algorithm == LeakyBucket && l.Burst == 0:
		l.Burst = 1
	case l.Algorithm == SlidingWindow && l.Precision == 0:
		l.Precision = (l.Per + 60*time.Millisecond - 1) / (60 * time.Millisecond) * time.Millisecond
	}
	return l
}

// capacity returns the maximum that can ever be used at once.
func (l Limit) capacity() int {
	if l.Algorithm.bucket() {
		return l.Burst
	}
	return l.Limit
}

// Validate returns all faults of l, with the names of the fields in small letters, and strings, numbers and booleans as
// values.
func (l Limit) Validate() invalid.FieldErrors {
	var errs invalid.FieldErrors
	known := slices.Contains(Algorithms, l.Algorithm)
	if !known {
		errs.Add("algorithm", string(l.Algorithm), "%s", oneOf(string(l.Algorithm), Algorithms))
	}
	most := MaxLimit
	if l.Algorithm == SlidingLog {
		most = MaxLogLimit
	}
	if l.Limit < 1 || l.Limit > most {
		errs.Add("limit", l.Limit, "must be a whole number from 1 to %d", most)
	}
	perOK := l.Per >= MinPer && l.Per <= MaxPer && l.Per%time.Millisecond == 0
	if !perOK {
		errs.Add("per", l.Per.String(), "must be whole milliseconds, from %s to %s", duration.Words(MinPer), duration.Words(MaxPer))
	}
	switch {
	case l.Burst == 0:
	case known && !l.Algorithm.bucket():
		errs.Add("burst", l.Burst, "is for %s and %s only", TokenBucket, LeakyBucket)
	case l.Burst < 0 || l.Burst > MaxLimit:
		errs.Add("burst", l.Burst, "must be a whole number from 1 to %d", MaxLimit)
	case l.Limit > 0 && perOK && l.refill() > MaxRefill:
		errs.Add("burst", l.Burst, "must be so small that it fills again within %s, at %d per %s", duration.Words(MaxRefill), l.Limit, duration.Each(l.Per))
	}
	switch {
	case l.Precision == 0:
	case known && l.Algorithm != SlidingWindow:
		errs.Add("precision", l.Precision.String(), "is for %s only", SlidingWindow)
	case l.Precision < MinPer || l.Precision%time.Millisecond != 0:
		errs.Add("precision", l.Precision.String(), "must be whole milliseconds, at least %s", duration.Words(MinPer))
	case perOK && l.Precision > l.Per:
		errs.Add("precision", l.Precision.String(), "must be at most per, which is %s", l.Per)
	case perOK && l.Precision < l.Per/MaxPrecisions:
		errs.Add("precision", l.Precision.String(), "must be at least a thousandth of per, which is %s", l.Per)
	}
	if known && l.Aligned && l.Algorithm != FixedWindow {
		errs.Add("aligned", l.Aligned, "is for %s only", FixedWindow)
	}
	switch {
	case l.Refill == "":
	case !slices.Contains(Refills, l.Refill):
		errs.Add("refill", string(l.Refill), "%s", oneOf(string(l.Refill), Refills))
	case known && l.Algorithm != TokenBucket:
		errs.Add("refill", string(l.Refill), "is for %s only", TokenBucket)
	}
	return errs
}

// oneOf returns the error about a word that is none of those, with the nearest of them.
func oneOf[S ~string](word string, all []S) string {
	var words []string
	for _, s := range all {
		words = append(words, string(s))
	}
	return invalid.Suggested("must be one of: "+strings.Join(words, ", "), word, words)
}

// refill returns how long an emptied bucket takes to fill again.
func (l Limit) refill() time.Duration {
	hi, lo := bits.Mul64(uint64(l.Burst), uint64(l.Per))
	if hi >= uint64(l.Limit) {
		return math.MaxInt64
	}
	whole, _ := bits.Div64(hi, lo, uint64(l.Limit))
	return time.Duration(min(whole, math.MaxInt64))
}

// The concurrent work of Redis is bounded in microseconds of its time. The weights are measured worst cases of calls;
// BenchmarkWeight compares.
const callWeight = 10

// weight returns the maximum time of Redis that a limit costs, in microseconds. It is higher for limits that have to
// search among many uses.
func (l Limit) weight() int {
	switch l.Algorithm {
	case SlidingLog:
		return searchWeight(l.Limit)
	case SlidingWindow:
		return searchWeight(int((l.Per+l.Precision-1)/l.Precision) + 1)
	}
	return 8
}

// searchWeight returns the weight of a search among uses.
func searchWeight(uses int) int { return 12 + 4*bits.Len(uint(uses)) }
