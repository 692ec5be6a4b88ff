// Package upkeep holds the loops that workers run by themselves: they own lanes, promote due pushes into the queue, poll
// while there is no queue, reap lost attempts, expire late pushes, apply policy changes to existing bookings, check the
// guarantees, add up stats, and remove old partitions and records.
//
// Each loop is one file: its interface of the store, its constructor, and a pass that tests can call. Package schedule
// serves what callers ask for.
package upkeep
