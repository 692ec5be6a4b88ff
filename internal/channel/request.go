package channel

import (
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/sendquota/sendquota/internal/outbound"
	"github.com/sendquota/sendquota/internal/push"
)

// envelope is the body that a provider gets. Every key is always present: to and category are empty strings, and
// metadata is null, if the push has none.
type envelope struct {
	ID        string          `json:"id"`
	Recipient string          `json:"recipient"`
	To        string          `json:"to"`
	Channel   string          `json:"channel"`
	Category  string          `json:"category"`
	Message   json.RawMessage `json:"message"`
	SendAt    string          `json:"send_at"`
	Attempt   int             `json:"attempt"`
	Metadata  json.RawMessage `json:"metadata"`
}

// request returns the request of one attempt. It fails only if the push holds invalid JSON.
func (w *Webhook) request(p push.Push, attempt int) (*http.Request, error) {
	body, err := encode(p, attempt)
	if err != nil {
		return nil, err
	}
	id := p.ID.String()
	req := outbound.Post(w.url, "application/json", body)
	req.Header["Idempotency-Key"] = []string{id}
	if w.user != nil {
		password, _ := w.user.Password()
		req.SetBasicAuth(w.user.Username(), password)
	}
	return req, outbound.Sign(req.Header, id, w.now(), body, w.signers...)
}

// encode keeps message and metadata as they came, except for white space: no number is rounded, no character escaped.
func encode(p push.Push, attempt int) ([]byte, error) {
	body, err := encodeJSON(envelope{
		ID:        p.ID.String(),
		Recipient: p.Recipient,
		To:        p.To,
		Channel:   p.Channel,
		Category:  p.Category,
		Message:   orNull(p.Message),
		SendAt:    p.SendAt.UTC().Format(time.RFC3339),
		Attempt:   attempt,
		Metadata:  orNull(p.Metadata),
	})
	if err != nil { // its text may quote the message
		return nil, errors.New("the message or its metadata is not valid JSON")
	}
	return body, nil
}

func orNull(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return nil
	}
	return raw
}
