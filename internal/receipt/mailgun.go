package receipt

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strconv"
	"time"
)

// mailgunAge is the maximum age of a signature. Mailgun repeats requests for eight hours.
const mailgunAge = 24 * time.Hour

// Mailgun reads Mailgun's webhooks.
//
// https://documentation.mailgun.com/docs/mailgun/user-manual/webhooks/securing-webhooks
type Mailgun struct {
	key []byte
	now func() time.Time
}

// NewMailgun returns a reader that accepts signatures by the signing key of webhooks.
func NewMailgun(key string) (*Mailgun, error) {
	if key == "" {
		return nil, errors.New("the signing key is missing")
	}
	return &Mailgun{[]byte(key), time.Now}, nil
}

// mailgunBody has the members of a request that are read.
type mailgunBody struct {
	Signature struct{ Timestamp, Token, Signature loose }
	Event     struct {
		Event, Severity, Reason, Recipient string

		Timestamp float64
		Message   struct {
			Headers struct {
				MessageID string `json:"message-id"`
			}
		}
		Status struct {
			Code         loose
			EnhancedCode loose  `json:"enhanced-code"`
			BounceType   string `json:"bounce-type"`
			Message      string
		} `json:"delivery-status"`
	} `json:"event-data"`
}

// Read proves and reads a request. Mailgun signs a timestamp and a token, and not the event: whoever sees one request can
// forge others for as long as its timestamp is accepted, which is a day.
func (m *Mailgun) Read(_ context.Context, r Request) (Report, error) {
	if err := r.check(); err != nil {
		return Report{}, err
	}
	var body mailgunBody
	if !decoded(r.Body, &body) {
		return Report{}, refused("the body is not an event")
	}
	if !m.signed(string(body.Signature.Timestamp), string(body.Signature.Token), string(body.Signature.Signature)) {
		return Report{}, refused("the signature does not match")
	}
	sent, err := strconv.ParseInt(string(body.Signature.Timestamp), 10, 64)
	if age := m.now().Sub(time.Unix(sent, 0)).Abs(); err != nil || age > mailgunAge {
		return Report{}, refused("the signature is older than a day")
	}
	what, code := body.meaning()
	e := body.Event
	var report Report
	report.add(what.receipts(messageIDPush(e.Message.Headers.MessageID), code, e.Recipient, seconds(e.Timestamp))...)
	return report, nil
}

func (m *Mailgun) signed(timestamp, token, signature string) bool {
	given, err := hex.DecodeString(signature)
	if err != nil || timestamp == "" || token == "" {
		return false
	}
	mac := hmac.New(sha256.New, m.key)
	mac.Write([]byte(timestamp + token))
	return hmac.Equal(mac.Sum(nil), given)
}

// meaning returns the meaning of an event and its code.
func (b *mailgunBody) meaning() (meaning, string) {
	codes, e := mailgunCodes(), b.Event
	if e.Event != "failed" {
		return codes[e.Event], e.Event
	}
	if e.Severity != "permanent" {
		return codes["failed/temporary"], ""
	}
	for _, code := range []string{"failed/" + e.Reason, "failed/" + string(e.Status.Code)} {
		if m, known := codes[code]; known {
			return m, code
		}
	}
	status := firstStatus(string(e.Status.EnhancedCode), e.Status.Message)
	code := cmp.Or(status, "failed")
	switch e.Status.BounceType {
	case "hard":
		return codes["failed/hard"], code
	case "soft":
		return codes["failed/soft"], code
	}
	return statusMeaning(status), code
}

// mailgunCodes returns the events of Mailgun: failures with their reason, their code, or else the type of the bounce.
//
// https://documentation.mailgun.com/docs/mailgun/user-manual/events/event-structure
func mailgunCodes() map[string]meaning {
	return map[string]meaning{
		"delivered": {"the recipient's mail server took it", delivered},

		"failed/suppress-bounce": {"the address has bounced before, and is on the list of Mailgun", hard},
		"failed/605":             {"the address has bounced before, and is on the list of Mailgun", hard},
		"failed/hard":            {"Mailgun calls the bounce hard", hard},
		"failed/soft":            {"Mailgun calls the bounce soft", soft},
		"failed/old":             {"it could not be delivered in time", soft},
		"failed/602":             {"it could not be delivered in time", soft},

		"complained": {"the recipient has marked it as spam", complained},

		"failed/suppress-complaint":   {"the recipient has complained before", dropComplained},
		"failed/607":                  {"the recipient has complained before", dropComplained},
		"failed/suppress-unsubscribe": {"the recipient has unsubscribed at Mailgun", dropUnsubscribed},
		"failed/606":                  {"the recipient has unsubscribed at Mailgun", dropUnsubscribed},
		"unsubscribed":                {"the recipient has unsubscribed at Mailgun", unsubscribed},

		"rejected":         {"Mailgun did not send it", undelivered},
		"failed/temporary": {"it is tried again", ignored},
	}
}
