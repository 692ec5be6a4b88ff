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
	said := outbound.StatusSentence("the provider", a.Status)
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

// meaning is the meaning of a provider's error code.
type meaning struct {
	text string // in our own words
	kind kind
}

// kind is the consequence of a code.
type kind int

const (
	temporary     kind = iota // refused for now: the operator can mend it, or time will
	busyAddress               // refused for now, because of this address alone
	permanent                 // refused permanently
	closedAddress             // refused permanently, because of this address alone
	unregistered              // refused permanently, because the provider no longer knows the address
	stopped                   // refused permanently, because the owner of the address has answered STOP
)

// final reports whether a refusal is permanent.
func (k kind) final() bool { return k >= permanent }

// oneAddress reports whether a refusal concerns the address alone.
func (k kind) oneAddress() bool { return k == busyAddress || k > permanent }

// refined refines the result of the status line by the provider's id of the message, or else by its error code.
// Providers also answer 4xx to faults of the operator, so a refusal is permanent only if the meaning of the code is.
// With a 5xx, a temporary code makes a refusal: a provider that reports overload has not taken the push. A permanent
// code contradicts a 5xx, so the outcome stays unknown. A code without a meaning is not shown.
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
	r.Stopped = m.kind == stopped
	r.Down = r.Down && m.kind == temporary
	if known {
		r.Error += ", " + code + ": " + m.text
	}
	if r.Unregistered {
		r.Error = "unregistered: " + r.Error
	}
	return r
}

// providerID returns the provider's id in its answer: the field id, or else message_id, of a JSON object, as string or
// number; empty if there is none.
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

// idText keeps a number as it is written, because ids do not fit into a float.
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
