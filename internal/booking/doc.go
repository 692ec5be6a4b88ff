// Package booking decides about pushes: whether the drafts of an order find a free time in their recipients' quotas and
// room under their tenant's caps, whether a push may move, what a claim does about a recipient's oldest due push, and
// what becomes of an attempt that was lost.
//
// It does no I/O itself: a snapshot in, decisions and what is to be written out. The store reads the snapshot, calls
// this package under the recipients' locks, and writes. [Views] may read a recipient's bookings when they are first
// asked for. The rules themselves and their arithmetic are in the package quota.
package booking
