// Package quota computes how many sends a recipient may get, and which times are free for one more. It also contains
// the cache, a disposable copy of recipients' bookings in Redis that answers fast.
//
// It is not for speed limits of callers or providers, and it knows nothing of pushes: it works on ids and times.
//
// # Windows
//
// A rolling [Rule] of limit N and window W holds if no half-open interval [x, x+W) contains more than N bookings. In
// other words: in the sorted times, any N+1 consecutive ones span at least W. Two bookings exactly W apart are fine,
// one second less is not.
//
// # Blocked intervals
//
// Every obstacle is a blocked interval. Each kind of rule has its own kind.
//
// Take any N consecutive bookings a … b with b−a < W. One more booking t makes them N+1 in less than W exactly if t
// lies in the open interval (b−W, a+W). All these intervals of all rules together are the times at which nothing can
// be booked. The decision, its explanation, the next and the previous free time and the picture of a recipient's
// calendar are read from them.
//
// An example: 2 per hour, booked at 10:00, 10:20 and 11:30.
//
//	10:00, 10:20   span 20 min < 1 h   block (09:20, 11:00)
//	10:20, 11:30   span 70 min ≥ 1 h   block nothing
//
//	        09:20     10:00  10:20          11:00     11:30
//	──────────(▒▒▒▒▒▒▒▒▒●▒▒▒▒▒●▒▒▒▒▒▒▒▒▒▒▒▒▒▒)──────────●──────
//
// So 10:45 is refused; the next free time is 11:00 sharp, the previous one 09:20 sharp. Two shortcuts would both be
// wrong: counting only (t−W, t] ignores later bookings (09:30 would pass), and counting all of (t−W, t+W) refuses
// what is legal (11:00, which sees 10:20 and 11:30).
//
// # Calendars and quiet hours
//
// A rule over [Periods] of limit N holds if no period contains more than N bookings. A period that has them is blocked,
// as a half-open interval: with its first instant, and up to its end. A full day blocks its midnight, and not the next
// one. Quiet hours are periods without places.
//
//	3 per day in Berlin, full on the 25th of October, which has 25 hours
//
//	     00:00 +02:00   ●   ●            ●    00:00 +01:00
//	──────────[▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒)──────────
//
// # Scopes
//
// A [Scope] filters the bookings first; the arithmetic on the remaining ones is the same. Places that are reserved for
// a category are a second rule: it counts the other categories, and its limit is lower by the number of reserved
// places. The caller selects the rules for a push when it builds the [Policy].
//
// # Old violations
//
// Only runs that t would belong to are read. Bookings that already break a rule, because its limit was lowered, block
// the times around them and nothing else.
package quota
