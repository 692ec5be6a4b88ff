// Package ratelimit limits speeds: how much a subject may use in a time, now. It is for callers of the API, for
// providers, and for any program that needs only a limiter. It is not for quotas of recipients at future send times,
// which package quota books.
//
// The state of a [Limit] lies in Redis. One Lua script (lua/*.lua) reads and changes it, on Redis' own clock, so that
// any number of processes share it. Several limits are decided together: all are charged, or none. A cost that is
// refused is never charged. A limit that was not used for a while leaves nothing behind.
//
// # The algorithms
//
// All times are exact to the microsecond.
//
//   - [FixedWindow] counts from a first use on for as long as Per, and then from the next one on; Aligned, in the
//     windows of the clock. Little memory; but nearly twice the limit passes around the edge between two windows.
//   - [SlidingLog] remembers the instant of every use. In no half-open time span [t, t+Per) are there more than Limit.
//     Exact, and expensive.
//   - [SlidingWindow] counts in steps of Precision, and takes all uses in a step for as late as its end. In no time
//     span of Per are there more than Limit; a use counts for Precision longer, at most.
//   - [TokenBucket] holds Burst tokens and gets Limit per Per, evenly. In any time span of length t there are at most
//     Burst + Limit × t / Per. With the Refill [Interval] it gets Limit at once whenever Per has passed: at most
//     Burst + Limit × (t / Per + 1), t / Per rounded down.
//   - [LeakyBucket] is a funnel that holds Burst units and drips Limit per Per, evenly. With its default Burst of 1
//     any two units are Per / Limit apart.
//
// The last two are the same arithmetic, that of GCRA, and one script: the room in a funnel is the tokens in a bucket.
// Only their default Burst differs. So the choice between them is one of words.
//
// # The answer
//
// Remaining is the highest cost that would be allowed right now.
//
// RetryAfter is the shortest time after which the same cost would be allowed, without other uses meanwhile: 0 if it is
// allowed now, [Never] if it is more than the limit has when nothing is used.
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
// in time as it really passes every promise above holds, but for the edges of Aligned windows, of which the clock shows
// some twice. No use counts for longer than if it had been made at the moment of the first decision after the jump. So
// all of it is replenished after Per at the latest (and one Precision; of a bucket, the time in which it fills),
// however large X is.
//
// # What it costs Redis
//
// The time of a decision does not depend on how much was used; only in [SlidingLog] and [SlidingWindow] it grows with
// the logarithm of the number of uses or steps. Each call has a weight, its time in Redis at most. [Config] bounds the
// weight of all calls under way, and of those of each owner.
package ratelimit
