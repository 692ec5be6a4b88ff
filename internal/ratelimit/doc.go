// Package ratelimit limits rates: how much a subject may use in a time, now. It serves callers of the API, providers,
// and any program that needs only a limiter. For quotas of recipients at future send times, see package quota.
//
// The state of a [Limit] is in Redis. One Lua script (lua/*.lua) reads and changes it, by Redis' own clock, so that any
// number of processes share it. Several limits are decided together: all are charged, or none. A refused cost is never
// charged. A limit that was not used for a while leaves nothing behind.
//
// # The algorithms
//
// All times are exact to the microsecond.
//
//   - [FixedWindow] counts for Per from a first use, and then from the next one; Aligned, in the
//     windows of the clock. It needs little memory, but allows nearly twice the limit around the edge between two windows.
//   - [SlidingLog] remembers the instant of every use. No half-open time span [t, t+Per) has more than Limit.
//     It is exact, and expensive.
//   - [SlidingWindow] counts in steps of Precision, and takes all uses in a step to be at its end. No time
//     span of Per has more than Limit; a use counts for at most Precision longer.
//   - [TokenBucket] holds Burst tokens and gets Limit per Per, evenly. Any time span of length t has at most
//     Burst + Limit × t / Per. With the Refill [Interval] it gets Limit at once whenever Per has passed: at most
//     Burst + Limit × (t / Per + 1), t / Per rounded down.
//   - [LeakyBucket] is a funnel that holds Burst units and drips Limit per Per, evenly. With its default Burst of 1,
//     any two units are Per / Limit apart.
//
// The last two are the same arithmetic, GCRA, and one script: the room in a funnel is the tokens in a bucket. Only
// their default Burst differs. So choose between them by the words that fit.
//
// # The answer
//
// Remaining is the highest cost that would be allowed right now.
//
// RetryAfter is the shortest time after which the same cost would be allowed, without other uses meanwhile: 0 if it is
// allowed now, [Never] if it exceeds the capacity of the limit.
//
// ResetAfter is the time until the limit is fully replenished:
//
//   - [FixedWindow]: until the window ends;
//   - [SlidingLog]: until Per after the last use;
//   - [SlidingWindow]: until Per after the end of the last step;
//   - [TokenBucket], [LeakyBucket]: until the bucket is full, or empty, again.
//
// If the cost was charged, Remaining and ResetAfter hold after the charge.
//
// # A clock that goes back
//
// Redis' clock can jump back by any X, as in a failover to another machine. Uses are kept: Remaining does not grow, and
// by real time every promise above holds, except at the edges of Aligned windows: the clock shows some of them twice.
// No use counts for longer than if it had been made at the first decision after the jump. So everything is replenished
// after Per at the latest (and one Precision; for a bucket, after the time that it takes to fill), however large X is.
//
// # Cost in Redis
//
// The time of a decision does not depend on the use, except in [SlidingLog] and [SlidingWindow], where it grows with
// the logarithm of the number of uses or steps. Each call has a weight: its maximum time in Redis. [Config] bounds the
// weight of all concurrent calls, and of each owner's.
package ratelimit
