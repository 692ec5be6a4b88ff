// Package pace keeps the speed that a provider can take, over all workers together.
//
// A channel's speed is a row of slots, one every interval. A worker that has something to send takes the next slot in
// Redis and waits for its time. So any number of workers share the slots evenly, without knowing of each other. A slot
// is lost only with the worker that took it. Slots that are not taken are gone, but for the provider's burst.
//
// While Redis does not answer, each worker keeps to a share: half of its part among the workers that it last knew of.
// The other half is for workers that it does not know of. The shares take turns, by Redis' clock as each worker
// remembers it.
//
// # From one to the other
//
// The provider must not get both, the slots and the shares. No worker knows what the others have found out, so time
// keeps them apart:
//
//	Redis:   answers │ lost                                 │ answers
//	slots:   ────────┼─────┤ those that were taken          │            ├────────
//	shares:          │          ├───────────────────────────┼──┤
//	                    ^ longest  ^ doubt                   rest  ^ quiet
//
// A worker uses its share when Redis has failed for as long as a worker may have to wait for a slot, and for half a
// second at least, in which every worker asks. By then all workers have found out, and have used the slots that they
// had taken. Meanwhile they ask Redis again after each cooldown of a second, so the use of shares ends soon after
// Redis is back. A worker that had lost Redis for half a second takes no slot for two seconds after it is back: longer
// than a time-out and a cooldown of any other worker. The cost is a pause at either end.
//
// If Redis was lost for less, no share was used. But it may have forgotten slots that workers still wait for. So a
// Redis that was started a moment ago gives no slots until these are over, for five seconds at most. If it lost slots
// in another way, the next worker tells: it sends along for how long slots are used up as far as it knows. If Redis
// knows of less, it gives the next slot only after all that can have been taken.
//
// A worker that alone does not reach Redis, while others do, sends its share beside the slots of the others: too much
// by half of its part.
//
// # A clock that goes back
//
// Redis' clock may jump back, as in a failover. The state of a channel has the time at which it was written: if that
// lies ahead, the clock is taken to have stood still since then. So a worker waits for no longer than for what was
// owed before, and no slot comes early. A pause lasts for no longer than it was asked for, counted from the jump, and
// workers that are gone are forgotten within a minute. When the clock jumps forward, slots that are waited for seem to
// be over; those that a worker says it waits for are kept free all the same.
//
// A pause that a provider asks for holds for all workers, and for the tenant whose push was answered so. What is sent,
// in which order, and when the whole channel pauses, is for the caller to decide.
package pace
