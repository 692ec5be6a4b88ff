package receipt

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"strings"

	"github.com/google/uuid"
)

// SendGrid reads the events of SendGrid's signed event webhook.
//
// https://www.twilio.com/docs/sendgrid/for-developers/tracking-events/event
type SendGrid struct{ key *ecdsa.PublicKey }

// NewSendGrid returns a reader that accepts signatures by a public key, which SendGrid shows in base64.
func NewSendGrid(publicKey string) (*SendGrid, error) {
	der, err := base64.StdEncoding.DecodeString(strings.TrimSpace(publicKey))
	if err != nil {
		return nil, errors.New("the public key is not base64")
	}
	parsed, err := x509.ParsePKIXPublicKey(der)
	key, ok := parsed.(*ecdsa.PublicKey)
	if err != nil || !ok || key.Curve != elliptic.P256() {
		return nil, errors.New("the public key is not a key of ECDSA on the curve P-256")
	}
	return &SendGrid{key}, nil
}

// Read proves and reads a request. It accepts an old timestamp, because a repeated request does no harm.
func (s *SendGrid) Read(_ context.Context, r Request) (Report, error) {
	if err := r.check(); err != nil {
		return Report{}, err
	}
	signature, err := base64.StdEncoding.DecodeString(r.Header.Get("X-Twilio-Email-Event-Webhook-Signature"))
	timestamp := r.Header.Get("X-Twilio-Email-Event-Webhook-Timestamp")
	if err != nil || timestamp == "" {
		return Report{}, refused("the signature is missing or not readable")
	}
	hash := sha256.New()
	hash.Write([]byte(timestamp))
	hash.Write(r.Body)
	if !ecdsa.VerifyASN1(s.key, hash.Sum(nil), signature) {
		return Report{}, refused("the signature does not match")
	}
	var events []sendgridEvent
	if !strings.HasPrefix(strings.TrimSpace(string(r.Body)), "[") || !decoded(r.Body, &events) {
		return Report{}, refused("the body is not a list of events")
	}
	var report Report
	for _, e := range events {
		m, code := e.meaning()
		report.add(m.receipts(e.push(), code, e.Email, seconds(e.Timestamp))...)
	}
	return report, nil
}

// sendgridEvent has the members of an event that are read. Push is an argument of the message, which the email channel
// sends in X-SMTPAPI.
type sendgridEvent struct {
	Event, Type, Reason, Email, Push string

	Status         loose
	Timestamp      float64
	SMTPID         string `json:"smtp-id"`
	Classification string `json:"bounce_classification"`
}

func (e *sendgridEvent) push() uuid.UUID {
	if id := pushID(e.Push); id != uuid.Nil {
		return id
	}
	return messageIDPush(e.SMTPID)
}

// meaning returns the meaning of an event and its code. SendGrid classifies bounces; where it does not, the status code
// of the mail server decides.
func (e *sendgridEvent) meaning() (meaning, string) {
	codes, code := sendgridCodes(), e.Event
	status := firstStatus(string(e.Status), e.Reason)
	switch e.Event {
	case "bounce":
		code += "/" + cmp.Or(e.Classification, "Unclassified")
		if e.Type == "blocked" {
			code = "bounce/blocked"
		}
		m, known := codes[code]
		if !known || code == "bounce/Unclassified" {
			m = statusMeaning(status)
		}
		return m, cmp.Or(status, code)
	case "dropped":
		code += "/" + e.Reason
		if m, known := codes[code]; known {
			return m, code
		}
		code = "dropped"
	}
	return codes[code], code
}

// sendgridCodes returns the events of SendGrid: bounces with their classification, and dropped messages with their
// reason.
//
// https://www.twilio.com/docs/sendgrid/ui/analytics-and-reporting/bounce-and-block-classifications
func sendgridCodes() map[string]meaning {
	return map[string]meaning{
		"delivered": {"the recipient's mail server took it", delivered},

		"bounce/Invalid Address":  {"the address is not valid or does not exist", hard},
		"dropped/Bounced Address": {"the address has bounced before, and is on the list of SendGrid", hard},
		"dropped/Invalid":         {"not a valid address", hard},

		"bounce/Mailbox Unavailable":          {"the mailbox is full or cannot take it", soft},
		"bounce/Technical Failure":            {"the mail servers could not reach or understand each other", soft},
		"bounce/Technical":                    {"the mail servers could not reach or understand each other", soft},
		"bounce/Content":                      {"the content was refused", soft},
		"bounce/Reputation":                   {"the sender was refused", soft},
		"bounce/Frequency or Volume Too High": {"the sender sends too much", soft},
		"bounce/Frequency/Volume":             {"the sender sends too much", soft},
		"bounce/Unclassified":                 {"the status code of the mail server decides, see below", soft},
		"bounce/blocked":                      {"the mail server refuses the message for now", soft},

		"spamreport": {"the recipient has marked it as spam", complained},

		"dropped/Spam Reporting Address": {"the recipient has complained before", dropComplained},
		"dropped/Unsubscribed Address":   {"the recipient has unsubscribed at SendGrid", dropUnsubscribed},
		"unsubscribe":                    {"the recipient has unsubscribed at SendGrid", unsubscribed},
		"group_unsubscribe":              {"the recipient has unsubscribed at SendGrid", unsubscribed},

		"dropped": {"SendGrid did not send it", undelivered},
	}
}
