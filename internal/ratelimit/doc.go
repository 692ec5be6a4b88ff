// Package ratelimit limits speeds: how much a subject may use in a time, now.
// It is for callers of the API, for providers, and for whoever wants only a
// limiter. It is not for quotas of recipients at future send times, which
// package quota books.
//
// The state of a [Limit] lies in Redis and is read and changed by one Lua
// script (lua/*.lua), on Redis' own clock, so that any number of processes
// share it. Several limits are looked at together: all are charged, or none.
// What is refused is never charged. What was not used for a while leaves
// nothing behind.
//
// # The algorithms
//
// All times are exact to the microsecond.
//
//   - [FixedWindow] counts from a first use on for as long as Per, and then from
//     the next one on. Little memory; but nearly twice the limit passes around
//     the edge between two windows.
//   - [SlidingLog] remembers the instant of every use. In no half-open time
//     span [t, t+Per) are there more than Limit. Exact, and expensive.
//   - [SlidingWindow] counts in buckets of Precision, and takes all in a bucket
//     for as late as its end. In no time span of Per are there more than Limit;
//     what is used counts for Precision longer, at most.
//   - [TokenBucket] holds Burst tokens and gets Limit per Per, evenly. In any
//     time span of length t there are at most Burst + Limit × t / Per.
//   - [LeakyBucket] is a funnel that holds Burst units and drips Limit per Per,
//     evenly. With its default Burst of 1 any two units are Per / Limit apart.
//
// The last two are the same arithmetic, that of GCRA, and one script: the room
// in a funnel is what a bucket has in tokens. Only their Burst differs where
// none is given. So the choice between the two is one of words.
//
// # The answer
//
// Remaining is the highest cost that would be allowed right now.
//
// RetryAfter is the shortest time after which the same cost would be allowed
// if nobody else came meanwhile: 0 if it is allowed now, [Never] if it is more
// than the limit has when nothing is used.
//
// ResetAfter is the shortest time after which the subject is as if never seen:
//
//   - [FixedWindow]: until the window ends;
//   - [SlidingLog]: until Per after the last use;
//   - [SlidingWindow]: until Per after the end of the last bucket;
//   - [TokenBucket], [LeakyBucket]: until the bucket is full, or empty, again.
//
// If the cost was charged, Remaining and ResetAfter are what they are
// afterwards.
package ratelimit
