package channel

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/sendquota/sendquota/internal/push"
)

// envelope is the body that a provider gets. Every key is always there:
// to and category are empty strings, metadata is null where the push has none.
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

// request makes the request of one attempt. It fails only if the push holds
// invalid JSON.
func (w *Webhook) request(p push.Push, attempt int) (*http.Request, error) {
	body, err := encode(p, attempt)
	if err != nil {
		return nil, err
	}
	id := p.ID.String()
	req := post(w.url, "application/json", body)
	req.Header["Idempotency-Key"] = []string{id}
	req.Header["Webhook-Id"] = []string{id}
	if w.authorization != "" {
		req.Header["Authorization"] = []string{w.authorization}
	}
	if err := w.sign(req.Header, id, body); err != nil {
		return nil, err
	}
	return req, nil
}

// post makes a request of a body. Its URL is not changed.
func post(to *url.URL, contentType string, body []byte) *http.Request {
	return &http.Request{
		Method: http.MethodPost,
		URL:    to,
		Header: http.Header{
			"Content-Type": {contentType},
			"User-Agent":   {"sendquota/1"},
		},
		Body:          io.NopCloser(bytes.NewReader(body)),
		ContentLength: int64(len(body)),
		// The transport sends a request that bears an Idempotency-Key a second
		// time, unasked, when a reused connection dies, unless it has no way to
		// get at the body again. An attempt is one request: keep it nil.
		GetBody: nil,
	}
}

// sign adds the headers of Standard Webhooks, version 1. The timestamp is the
// attempt's, so that a retry is not too old for the receiver. While secrets are
// rotated there is a signature with each: the receiver takes the one it knows.
func (w *Webhook) sign(h http.Header, id string, body []byte) error {
	if len(w.signers) == 0 {
		return nil
	}
	now := w.now()
	signatures := make([]string, len(w.signers))
	for i, signer := range w.signers {
		var err error
		if signatures[i], err = signer.Sign(id, now, body); err != nil {
			return errors.New("the request could not be signed")
		}
	}
	h["Webhook-Timestamp"] = []string{strconv.FormatInt(now.Unix(), 10)}
	h["Webhook-Signature"] = []string{strings.Join(signatures, " ")}
	return nil
}

// encode keeps message and metadata as they came, but for white space: no
// number is rounded, no character escaped.
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
