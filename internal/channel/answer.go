package channel

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/sendquota/sendquota/internal/outbound"
	"github.com/sendquota/sendquota/internal/push"
)

const maxProviderID = 255 // bytes

// classify turns a provider's answer into a result, by its status line.
func classify(a outbound.Answer, now time.Time) Result {
	said := outbound.Said("the provider", a.Status)
	wait, asked := outbound.RetryAfter(a.Header, now)
	switch code := a.Status; {
	case code >= 200 && code < 300:
		return Result{Outcome: push.Delivered, Handed: a.Handed}
	case code >= 300 && code < 400:
		return Result{Outcome: push.Refused, Final: true, Error: said + "; redirects are not followed"}
	case code == http.StatusRequestTimeout, code == http.StatusTooEarly, code == http.StatusTooManyRequests,
		code == http.StatusServiceUnavailable && asked:
		return Result{Outcome: push.Refused, RetryAfter: wait, Error: said}
	case code >= 400 && code < 500:
		return Result{Outcome: push.Refused, Final: true, Down: code == http.StatusUnauthorized || code == http.StatusForbidden, Error: said}
	}
	return Result{Outcome: push.Unknown, Down: true, Error: said}
}

// meaning is what a code of a provider's own stands for.
type meaning struct {
	text string // in words of our own
	kind kind
}

// kind is what follows from a code.
type kind int

const (
	temporary     kind = iota // refused for now: the operator can mend it, or time does
	busyAddress               // refused for now, because of this address alone
	permanent                 // refused for good
	closedAddress             // the same, because of this address alone
	unregistered              // the same, because the provider no longer knows the address
)

// final reports whether a refusal is for good.
func (k kind) final() bool { return k >= permanent }

// oneAddress reports whether a refusal is about the address alone.
func (k kind) oneAddress() bool { return k == busyAddress || k > permanent }

// refined refines what the status says by the provider's own id of the message, or else by its code. Such a provider
// also answers 4xx to what is the operator's fault, not the push's, so a refusal is for good only where the code's
// meaning says so. With a 5xx, a code that is not for good makes a refusal: a provider that says it is overloaded has
// not taken the push. One that is for good contradicts a 5xx, and leaves it open. A code without a meaning is not
// shown.
func (r Result) refined(id, code string, codes map[string]meaning) Result {
	m, known := codes[code]
	switch {
	case r.Outcome == push.Delivered:
		r.ProviderMessageID = outbound.Printable(id, maxProviderID)
		return r
	case r.Outcome == push.Unknown && (!known || m.kind.final()):
		return r
	}
	r.Outcome, r.Final, r.Unregistered, r.OneAddress = push.Refused, m.kind.final(), m.kind == unregistered, m.kind.oneAddress()
	r.Down = r.Down && m.kind == temporary
	if known {
		r.Error += ", " + code + ": " + m.text
	}
	if r.Unregistered {
		r.Error = "unregistered: " + r.Error
	}
	return r
}

// providerID finds the provider's own id in its answer: the field id, or else message_id, of a JSON object, as text
// or number. Empty if there is none.
func providerID(body []byte) string {
	var answer struct {
		ID        json.RawMessage `json:"id"`
		MessageID json.RawMessage `json:"message_id"`
	}
	if json.Unmarshal(body, &answer) != nil {
		return ""
	}
	if id := idText(answer.ID); id != "" {
		return id
	}
	return idText(answer.MessageID)
}

// idText keeps a number as it is written: ids do not fit into a float.
func idText(raw json.RawMessage) string {
	if len(raw) == 0 {
		return ""
	}
	if raw[0] == '-' || raw[0] >= '0' && raw[0] <= '9' {
		return outbound.Printable(string(raw), maxProviderID)
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return ""
	}
	return outbound.Printable(text, maxProviderID)
}
