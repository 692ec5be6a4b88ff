// Package schedule serves what callers ask for: submit, batch, check, cancel, move and retry a push, and read the
// quota, the policy and the history of a recipient. Package upkeep does what runs by itself.
//
// A submit plans the request (request.go), asks the cache, books in Postgres, which decides, updates the cache, and
// arms a wake-up if the push is due soon (submit.go).
package schedule
