// Package receipt proves and reads what providers report about sent messages: that a message was delivered, bounced or
// was marked as spam. It needs no database. docs/channels.md describes what each provider must be configured to send.
//
// A [Reader] gets one request of a provider and returns a [Report]. Each reader first proves the request with the
// secrets of its channel, and reads nothing of a request without a proof.
//
//   - [Twilio] reads status callbacks and inbound messages.
//   - [SES] reads notifications of Amazon SES through SNS.
//   - [SendGrid], [Mailgun] and [Postmark] read the events of these providers.
//   - [DSN] reads delivery status notifications (RFC 3464) and complaints (RFC 5965), which are mails.
//
// # What a proof proves
//
// It proves that the provider sent the report about a message of ours. It does not prove the address in it: any mail
// server, and so any recipient, can write a delivery status notification about another address. So suppress an address
// only if the push was sent to it.
//
// # Repeated and late reports
//
// Readers keep no memory of requests, and accept a request again. A report leads to the same state however often and in
// whatever order it is read: see [State.Over].
//
// # Texts
//
// A code is a provider's code of a known form, and a reason is one of our own texts. Nothing else that a provider wrote
// gets into them, because its texts quote addresses.
package receipt
