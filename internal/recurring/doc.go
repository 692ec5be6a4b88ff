// Package recurring submits pushes, and starts campaigns, by schedules, and records the outcomes of their occurrences.
// Package recurrence computes the times.
//
// Postgres is the clock. An occurrence happens once, however many workers process it, and wherever they die:
//
//  1. A worker that finds a schedule due decides about its occurrences (missed ones are skipped, the others begin). One
//     transaction locks the schedule, records them, and moves the schedule on to its next one, unless another worker has
//     done so since.
//  2. A worker that finds an occurrence begun locks it, and submits the push under an Idempotency-Key that follows from
//     the schedule and the time. The transaction that holds the lock also records the result. If a worker
//     dies in between, its lock ends, and the next worker gets the same push.
//
// A change is decided on a schedule as it was read, and decided again if that is outdated under the lock. A schedule is
// changed and deleted under its lock. So the change waits for an occurrence that is being submitted.
package recurring
