package receipt

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// Postmark reads Postmark's webhooks. Mails need a header: see [MailHeader].
//
// https://postmarkapp.com/developer/webhooks/webhooks-overview
type Postmark struct{ username, password string }

// NewPostmark returns a reader that accepts basic credentials.
func NewPostmark(username, password string) (*Postmark, error) {
	if username == "" || password == "" {
		return nil, errors.New("the user name or the password is missing")
	}
	return &Postmark{username, password}, nil
}

// postmarkBody has the members of a webhook that are read.
type postmarkBody struct {
	RecordType, Type, Email, Recipient, BouncedAt, DeliveredAt, ChangedAt, SuppressionReason, Origin string

	SuppressSending bool
	Metadata        struct{ Push string }
}

// Read proves and reads a request.
func (p *Postmark) Read(_ context.Context, r Request) (Report, error) {
	if err := r.check(); err != nil {
		return Report{}, err
	}
	username, password, ok := (&http.Request{Header: r.Header}).BasicAuth()
	sameUser, samePassword := sameSecret(username, p.username), sameSecret(password, p.password)
	if !ok || !sameUser || !samePassword {
		return Report{}, refused("the user name or the password is wrong")
	}
	var body postmarkBody
	if !decoded(r.Body, &body) || body.RecordType == "" {
		return Report{}, refused("the body is not an event")
	}
	code, address, at := body.event()
	m, known := postmarkCodes()[code]
	if !known && body.RecordType == "Bounce" {
		m = statusMeaning("")
	}
	var report Report
	report.add(m.receipts(pushID(body.Metadata.Push), code, address, at)...)
	return report, nil
}

// event returns the code, the address and the time of an event.
func (b *postmarkBody) event() (code, address string, at time.Time) {
	switch b.RecordType {
	case "Bounce":
		return b.Type, b.Email, instant(b.BouncedAt)
	case "SpamComplaint":
		return "SpamComplaint", b.Email, instant(b.BouncedAt)
	case "SubscriptionChange":
		if b.SuppressSending && b.SuppressionReason == "ManualSuppression" && b.Origin == "Recipient" {
			return "SubscriptionChange", b.Recipient, instant(b.ChangedAt)
		}
		return "", "", time.Time{}
	}
	return b.RecordType, b.Recipient, instant(b.DeliveredAt)
}

// postmarkCodes returns the types of bounces and of other events of Postmark.
//
// https://postmarkapp.com/developer/api/bounce-api#bounce-types
func postmarkCodes() map[string]meaning {
	return map[string]meaning{
		"Delivery": {"the recipient's mail server took it", delivered},

		"HardBounce":      {"there is no such mailbox", hard},
		"BadEmailAddress": {"not a valid address", hard},

		"SoftBounce":       {"the mailbox is full or cannot take it", soft},
		"DnsError":         {"the mail server could not be found", soft},
		"SpamNotification": {"the content was refused as spam", soft},
		"Blocked":          {"the sender was refused", soft},
		"DMARCPolicy":      {"the DMARC policy of the sender's domain refuses it", soft},
		"Unknown":          {"it bounced for an unknown reason", soft},

		"SpamComplaint": {"the recipient has marked it as spam", complained},

		"Unsubscribe":        {"the recipient asks to be removed", unsubscribed},
		"SubscriptionChange": {"the recipient has unsubscribed at Postmark", unsubscribed},

		"ManuallyDeactivated":     {"the address was switched off at Postmark", undelivered},
		"Unconfirmed":             {"the address has not confirmed its registration at Postmark", undelivered},
		"VirusNotification":       {"the mail server reports a virus", undelivered},
		"ChallengeVerification":   {"the mail server asks the sender to confirm", undelivered},
		"SMTPApiError":            {"Postmark did not take it", undelivered},
		"TemplateRenderingFailed": {"Postmark could not render its template", undelivered},

		"Transient":     {"it is late", ignored},
		"AutoResponder": {"an automatic reply, such as out of office", ignored},
		"AddressChange": {"an automatic reply about another address", ignored},
		"Subscribe":     {"the recipient asks to be added", ignored},
		"OpenRelayTest": {"a test of the mail server", ignored},
		"InboundError":  {"about mail to Postmark", ignored},
	}
}
