// Package booking decides about pushes: whether the drafts of an order find a free time in their recipients' quotas and
// room under their tenant's caps, whether a push may move, what a claim does with a recipient's oldest due push, and
// the new state of a push after a lost attempt.
//
// It does no I/O itself: it turns a snapshot into decisions and the rows to write. The store reads the snapshot, calls
// this package under the recipients' locks, and writes. [Views] may read a recipient's bookings on first use. The rules
// and their arithmetic are in package quota.
package booking
