// Package pace keeps the speed that a provider can take, over all workers together.
//
// A channel's speed is a row of slots, one every interval. A worker that has something to send takes the next slot in
// Redis, and waits for its time: so any number of workers share the slots evenly, without knowing of each other, and
// no more is sent however many there are. A worker takes a slot when somebody is there to use it, so that a slot is
// lost only with its worker. Slots that nobody took are gone, but for a burst of so many as the provider allows.
//
// While Redis does not answer, each worker keeps to a share of its own: half of its part among the workers that it
// last knew of. The other half is for those that it does not know of. The shares of all workers take turns, by Redis'
// clock as each remembers it.
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
// A worker uses its share when Redis has failed for as long as anybody may have to wait for a slot, and for half a
// second at least, in which every worker asks: by then all have found out, and have used what they had taken. While
// it uses its share it asks Redis again every second, so a second after Redis is back nobody uses one any more. And
// who found Redis lost for half a second takes no slot for two seconds after it is back. The cost is a pause at
// either end.
//
// If Redis was lost for less, nobody used a share. But it may have forgotten slots that workers still wait for. So a
// Redis that was started a moment ago gives none until they are over, for five seconds at most. Nor does one that
// lost them in another way: a worker that comes for its next slot says for how long slots are used up as far as it
// knows. If Redis knows of less, it has forgotten some: then the next is one after all that can have been taken.
//
// A worker that alone does not reach Redis, while others do, sends its share beside the slots of the others: too much
// by half of its part.
//
// # A clock that goes back
//
// Redis' clock may jump back, as in a failover. The state of a channel has the time at which it was written: if that
// lies ahead, the clock is taken to have stood still since then. So nobody waits for longer than for what was owed
// before, and no slot comes early. Pauses last for as long as they were asked for at most, counted from the jump, and
// workers that are gone are forgotten within a minute. When the clock jumps forward, slots that are waited for seem
// to be over, and those for whom a worker comes that waited for one are kept free all the same.
//
// A provider that asks for a pause gets it from all workers.
//
// What is to be sent, and in which order, is for the caller to say.
package pace
