// Package notify tells tenants what becomes of their pushes: it posts events to
// the webhooks that they have set up, signed as Standard Webhooks demands.
//
// Events are not made here. Postgres writes one row per event and webhook, the
// outbox, in the very transaction that changes a push (migrations/0002), so that
// none is lost and none is told that did not happen. The [Notifier] claims what
// is due, posts it, and settles how that ended:
//
//   - At least once. A worker that dies leaves a lease behind; when it runs out
//     the event is sent again, under the same webhook-id.
//   - In order per push and webhook: an event waits until those before it are
//     delivered or given up.
//   - What fails is repeated over a day, with growing pauses (see backoff).
//   - No endpoint waits for another one. Of each, only a few requests are under
//     way at once, and one while it fails; the worker has room for hundreds. The
//     delivery of pushes does not depend on it.
//   - An endpoint that fails for long, or answers 410 Gone, is switched off.
//
// Tenants choose the endpoints, so requests go out by internal/outbound, which
// reaches public addresses only, and of an answer only the status is kept.
//
// [Webhooks] serves the API: tenants set up, test and replay their webhooks by it.
package notify
