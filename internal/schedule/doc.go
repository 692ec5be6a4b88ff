// Package schedule is what callers do with pushes (submit, cancel, reschedule, look), and what the workers do so that
// pushes get their turn: promote, reap, expire, and poll while there is no queue.
//
// The way of a submit: the request is planned (request.go), the cache is asked, Postgres decides, the cache is told,
// and a wake-up is armed if the push is due at once (submit.go).
package schedule
