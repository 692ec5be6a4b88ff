// Package pace keeps the speed that a provider can take, over all workers
// together.
//
// A channel's speed is a row of slots, one every interval. A worker that has
// something to send takes the next slot in Redis, and waits for its time: so any
// number of workers share the slots evenly, without knowing of each other, and
// no more is sent however many there are. A worker takes a slot when somebody is
// there to use it, so that a slot is lost only with its worker. Slots that
// nobody took are gone, but for a burst of so many as the provider allows.
//
// While Redis does not answer, each worker keeps to a share of its own: half of
// its part among the workers that it last knew of. The other half is for those
// that it does not know of.
//
// A provider that asks for a pause gets it from all workers.
//
// What is to be sent, and in which order, is for the caller to say.
package pace
