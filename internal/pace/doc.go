// Package pace keeps to the speed that a provider can take, over all workers together.
//
// A channel's speed is a row of slots, one every interval. A worker that has something to send takes the next slot in
// Redis and waits for its time. So any number of workers share the slots evenly, without knowing of each other. A slot
// is lost only with the worker that took it. Slots that are not taken are gone, except for the provider's burst.
//
// While Redis does not answer, each worker keeps to a share: half of its part among the workers that it last knew of.
// The other half is for workers that it does not know of. The shares take turns, by Redis' clock as each worker
// remembers it.
//
// An attempt may take several slots, such as a text of several segments. The worker takes as many as it expects at once, as
// one longer slot. If the attempt turns out to be larger, it charges the others: they are taken behind all slots that
// workers have taken by then. Slots that cannot be charged, because Redis does not answer, are charged with the worker's
// next slot, or left out of its share.
//
// # Switching between slots and shares
//
// The provider must not get both, the slots and the shares. No worker knows what the others have found out, so time
// keeps the two apart:
//
//	Redis:   answers │ lost                                 │ answers
//	slots:   ────────┼─────┤ slots already taken            │            ├────────
//	shares:          │          ├───────────────────────────┼──┤
//	                    ^ longest  ^ doubt                   rest  ^ quiet
//
// A worker uses its share once Redis has failed for as long as a worker may have to wait for a slot, but for at least
// half a second, because every worker asks within that time. By then all workers have found out, and have used the
// slots that they had taken. Meanwhile they ask Redis again after each cooldown of a second, so the use of shares ends
// soon after Redis is back. A worker that had lost Redis for half a second takes no slot for two seconds after it is
// back: longer than a time-out and a cooldown of any other worker. The cost is a pause at either end.
//
// If Redis was lost for less, no share was used. But it may have forgotten slots that workers still wait for. So a
// Redis that was started a moment ago gives no slots until these are over, for five seconds at most. If it lost slots
// in another way, the next worker reveals it: a worker sends along how far the slots are used up to its knowledge. If
// Redis knows of less, it gives the next slot only after all slots that can have been taken.
//
// A worker that alone does not reach Redis, while others do, sends its share beside the slots of the others: too much
// by half of its part.
//
// # A clock that goes back
//
// Redis' clock may jump back, as in a failover. A channel's state includes the time when it was written. If that lies
// ahead, the clock is taken to have stood still since then. So a worker waits no longer than before the jump, and no
// slot comes early. A pause lasts no longer than requested, counted from the jump, and workers that are gone are
// forgotten within a minute. When the clock jumps forward, awaited slots seem to be over; slots that a worker reports
// to wait for are kept free all the same.
//
// A pause that a provider asks for holds for all workers, and for the tenant whose push got this answer. The caller
// decides what to send, the order, and when the whole channel pauses.
package pace
