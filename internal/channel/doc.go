// Package channel implements the channels: a channel hands one push to one provider and returns the result. All
// channels share one interface, [Channel], and one table of provider answers in the tests. docs/channels.md describes
// what each sends, and how it reads a provider's own codes.
//
// # Outcomes
//
// The outcome of an attempt decides whether a second one could deliver twice, so a channel claims only what it knows:
//
//   - delivered: the provider said so. The status line counts; a broken or
//     endless body after it changes nothing.
//   - refused: certainly not delivered. Either nothing was sent, or the provider
//     refused, or reported that it has not processed the request. Final means that
//     it would refuse again: it said so, and the operator cannot mend it.
//     Unregistered means that the provider no longer knows the address.
//   - unknown: everything else. Once something was written, a timeout, a reset or
//     an unreadable answer leaves open what the provider has done.
//
// # Secrets
//
// The text of a [Result] is shown to the tenant, stored and logged. It is made from the status code or from a fixed
// list of reasons, never from a provider's text, and contains no message, recipient, address, secret or URL.
//
// The package does not retry, limit speed or keep records; package delivery does.
package channel
