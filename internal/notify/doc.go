// Package notify posts events about pushes and campaigns to the webhooks that tenants have set up, signed as Standard
// Webhooks demands.
//
// Events are not made here. The transaction that changes a push also writes one row per event and webhook, the outbox
// (migrations/0002). So no event is lost, and none is sent for a change that was rolled back. The [Notifier] claims due
// events, posts them, and records the results:
//
//   - At least once. After a worker dies, its lease expires, and
//     the event is sent again, under the same webhook-id.
//   - In order per push and webhook: an event waits until those before it are
//     delivered or given up.
//   - A failed event is retried over a day, with growing pauses (see backoff).
//   - No endpoint waits for another one. Each has only a few concurrent requests,
//     and a single one while it fails; the worker has room for hundreds. The
//     delivery of pushes does not depend on it.
//   - An endpoint that fails for long, or answers 410 Gone, is disabled.
//
// Tenants choose the endpoints. So requests go out by internal/outbound, which reaches public addresses only, and of an
// answer only the status is kept.
//
// [Webhooks] serves the API that sets up, tests and replays webhooks.
package notify
