package receipt

import (
	"cmp"
	"context"
	"errors"
	"net/mail"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
)

// DSN reads delivery status notifications (RFC 3464) and complaints in the Abuse Reporting Format (RFC 5965).
type DSN struct {
	token    string
	envelope envelope
}

// NewDSN returns a reader that accepts a bearer token. The pattern of envelope addresses, such as
// bounces+{id}@example.com, finds a push by the address that a notification was sent to; it may be empty.
func NewDSN(token, bounceAddress string) (*DSN, error) {
	if token == "" {
		return nil, errors.New("the token is missing")
	}
	return &DSN{token, newEnvelope(bounceAddress)}, nil
}

// Read proves and reads a request, whose body is a mail.
func (d *DSN) Read(_ context.Context, r Request) (Report, error) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") || !sameSecret(strings.TrimSpace(token), d.token) {
		return Report{}, refused("the token is wrong")
	}
	return d.ReadMail(r.Body)
}

// ReadMail reads a mail that needs no proof. A mail that is no notification has an empty report.
func (d *DSN) ReadMail(raw []byte) (Report, error) {
	if err := (Request{Body: raw}).check(); err != nil {
		return Report{}, err
	}
	n, err := readNotification(raw)
	if err != nil {
		return Report{}, err
	}
	var report Report
	push, sent := n.push(d.envelope), mailDate(n.head.Get("Date"))
	for _, r := range n.recipients {
		m, code := recipientMeaning(r)
		at := mailDate(r.Get("Last-Attempt-Date"))
		if at.IsZero() {
			at = sent
		}
		report.add(m.receipts(push, code, recipientAddress(r), at)...)
	}
	if n.feedback != nil {
		kind := strings.ToLower(strings.TrimSpace(n.feedback.Get("Feedback-Type")))
		m, known := feedbackTypes()[kind]
		if !known {
			m = feedbackTypes()["other"]
		}
		addresses := n.feedback.Values("Original-Rcpt-To")
		if len(addresses) == 0 {
			addresses = []string{""}
		}
		for _, address := range addresses[:min(len(addresses), maxRecipients)] {
			report.add(m.receipts(push, "feedback/"+kind, strings.Trim(address, " <>"), sent)...)
		}
	}
	return report, nil
}

// mailAddress finds addresses in a header.
var mailAddress = regexp.MustCompile(`[^\s<>,;:"()]+@[^\s<>,;:"()]+`)

// push returns the push of the message that a notification is about: by the address that it was sent to, or by our
// Message-ID in the returned headers. Some servers name the Message-ID in the notification's own headers only.
func (n *notificationMail) push(e envelope) uuid.UUID {
	for _, name := range []string{"Delivered-To", "X-Original-To", "Envelope-To", "To"} {
		for _, value := range n.head.Values(name) {
			for _, address := range mailAddress.FindAllString(value, maxAddresses) {
				if id := e.push(address); id != uuid.Nil {
					return id
				}
			}
		}
	}
	ids := []string{n.message.Get("Original-Envelope-Id"), n.original.Get("Message-Id")}
	for _, name := range []string{"In-Reply-To", "References"} {
		ids = append(ids, strings.Fields(n.head.Get(name))...)
	}
	for _, id := range ids {
		if push := messageIDPush(id); push != uuid.Nil {
			return push
		}
	}
	return pushID(strings.TrimSpace(ids[0]))
}

// recipientMeaning returns the meaning of a recipient's fields, and the status code. A server that has only a general
// code may quote a better one.
func recipientMeaning(r fields) (meaning, string) {
	action, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(r.Get("Action"))), " ")
	m, known := actions()[action]
	if !known {
		return meaning{}, ""
	}
	if m.kind != soft {
		return m, action
	}
	status := firstStatus(strings.TrimSpace(r.Get("Status")))
	_, quoted, _ := strings.Cut(r.Get("Diagnostic-Code"), ";")
	if status == "" || strings.HasSuffix(status, ".0.0") {
		status = cmp.Or(firstStatus(quoted), status)
	}
	return statusMeaning(status), cmp.Or(status, action)
}

// recipientAddress returns the address that the message was sent to, or else the one where it ended.
func recipientAddress(r fields) string {
	kind, address, _ := strings.Cut(r.Get("Original-Recipient"), ";")
	if address = strings.TrimSpace(address); address != "" && strings.EqualFold(strings.TrimSpace(kind), "rfc822") {
		return xtext.ReplaceAllStringFunc(address, func(s string) string {
			code, _ := strconv.ParseUint(s[1:], 16, 8)
			return string(rune(code))
		})
	}
	_, address, _ = strings.Cut(r.Get("Final-Recipient"), ";")
	return strings.Trim(strings.TrimSpace(address), "<>")
}

// xtext matches a character that is encoded by RFC 3461. Only visible characters of ASCII are.
var xtext = regexp.MustCompile(`\+[2-7][0-9A-F]`)

// mailDate parses the date of a header; zero: unknown.
func mailDate(s string) time.Time {
	at, _ := mail.ParseDate(strings.TrimSpace(s))
	return at
}

// actions returns the actions of RFC 3464. The status code of a failed one decides further.
func actions() map[string]meaning {
	return map[string]meaning{
		"delivered": {"it is in the mailbox", delivered},
		"relayed":   {"the next mail server took it, and reports no more", delivered},
		"expanded":  {"it was sent on to the addresses of a list", delivered},
		"failed":    {"it bounced: the status code decides", soft},
		"delayed":   {"it is late, and tried again", ignored},
	}
}

// feedbackTypes returns the types of complaints (RFC 5965, RFC 6591, and their registry). An unknown type means the same
// as other.
func feedbackTypes() map[string]meaning {
	return map[string]meaning{
		"abuse":        {"the recipient has marked it as spam", complained},
		"fraud":        {"it was reported as fraud", complained},
		"virus":        {"it was reported for a virus", complained},
		"other":        {"the recipient has complained", complained},
		"opt-out":      {"the recipient asks to be removed", unsubscribed},
		"auth-failure": {"a report about authentication, of no recipient", ignored},
		"not-spam":     {"the recipient has marked it as no spam", ignored},
	}
}
