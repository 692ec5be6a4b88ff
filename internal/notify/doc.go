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
//   - What fails is repeated over a day, with growing pauses ([Backoff]).
//   - Nobody waits for somebody else's endpoint. Of each, only a few requests are
//     under way at once, and one where it fails; the worker has room for hundreds.
//     Pushes are delivered by others.
//   - An endpoint that fails for long, or answers 410 Gone, is switched off.
//
// Endpoints are the tenants' own words, so requests go out by internal/outbound,
// which reaches public addresses only, and nothing that an endpoint answers is
// kept but its status.
//
// [Webhooks] is what tenants do with their webhooks, for the API.
package notify
