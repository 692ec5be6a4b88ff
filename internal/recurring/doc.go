// Package recurring sends pushes again and again: schedules, and what becomes of their occurrences. Package recurrence
// says when something occurs.
//
// Postgres is the clock, and an occurrence happens once however many workers look at it, and wherever they die:
//
//  1. A worker that finds a schedule due locks it, puts its occurrences on record, the missed ones as skipped and the others
//     as begun, and moves the schedule on to its next one: all of it in one transaction.
//  2. A worker that finds an occurrence begun locks it, and submits the push under an Idempotency-Key that follows from
//     the schedule and the time. What the submit says goes on record in the same transaction that has the lock. A worker
//     that dies in between leaves the lock, and the next one gets the same push.
//
// A schedule is changed and deleted under its lock: an occurrence that is being submitted is waited for.
package recurring
