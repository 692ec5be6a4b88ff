// Package channel holds the ways out: a channel hands one push to one provider
// and says what became of it. All channels share one contract, [Channel], and
// one table of provider answers in the tests: learn one, know all. What each
// sends, and what it makes of a provider's own codes, is in docs/channels.md.
//
// # Outcomes
//
// The outcome of an attempt decides whether a second one could deliver twice,
// so a channel claims only what it knows:
//
//   - delivered: the provider said so. The status line counts; a broken or
//     endless body after it changes nothing.
//   - refused: surely not delivered. Either nothing was sent, or the provider
//     said no, or that it has not processed the request. Final says that it
//     would say no again: it said so, and the operator cannot mend it.
//     Unregistered says that the provider no longer knows the address.
//   - unknown: everything else. From the moment something was written, a
//     timeout, a reset or an unreadable answer leaves open what the provider
//     has done.
//
// # Secrets
//
// The text of a [Result] is shown to the tenant, stored and logged. It is made
// from the status code or from a fixed list of reasons, never from what a
// provider wrote, and holds no message, recipient, address, secret or URL.
//
// The package does not retry, limit speed or keep records: that is delivery's
// part.
package channel
