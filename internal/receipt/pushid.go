package receipt

import (
	"strings"

	"github.com/google/uuid"
)

// messageIDPush returns the push of a Message-ID that we wrote: <push id@domain>. The domain may have been changed since.
func messageIDPush(id string) uuid.UUID {
	id = strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(id), "<"), ">")
	local, _, found := strings.Cut(id, "@")
	if !found {
		return uuid.Nil
	}
	return pushID(local)
}

// pushID parses the id of a push, with or without its dashes.
func pushID(s string) uuid.UUID {
	if len(s) != 36 && len(s) != 32 {
		return uuid.Nil // uuid.Parse also accepts other forms
	}
	id, err := uuid.Parse(s)
	if err != nil {
		return uuid.Nil
	}
	return id
}

// MailHeader returns the header that a mail needs so that the events of a provider (ses, sendgrid, mailgun or postmark)
// name its push, or empty texts if our Message-ID is enough. The provider removes the header.
func MailHeader(events string, push uuid.UUID) (name, value string) {
	switch events {
	case "postmark": // which replaces our Message-ID
		return "X-PM-Metadata-push", push.String()
	case "sendgrid": // which does not name the Message-ID in all events
		return "X-SMTPAPI", `{"unique_args":{"push":"` + push.String() + `"}}`
	}
	return "", ""
}

// envelope finds pushes in addresses of a pattern such as bounces+{id}@example.com. The zero value finds none.
type envelope struct{ before, after string }

func newEnvelope(pattern string) envelope {
	before, after, found := strings.Cut(strings.ToLower(pattern), "{id}")
	if !found {
		return envelope{}
	}
	return envelope{before, after}
}

// push returns the push of an address. Mail servers may change the case of an address.
func (e envelope) push(address string) uuid.UUID {
	if e.after == "" {
		return uuid.Nil
	}
	address = strings.ToLower(strings.Trim(strings.TrimSpace(address), "<>"))
	id, ok := strings.CutPrefix(address, e.before)
	if !ok {
		return uuid.Nil
	}
	id, ok = strings.CutSuffix(id, e.after)
	if !ok {
		return uuid.Nil
	}
	return pushID(id)
}
