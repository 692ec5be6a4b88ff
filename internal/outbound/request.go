package outbound

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// Post returns a request with a body. Its URL is not changed.
func Post(to *url.URL, contentType string, body []byte) *http.Request {
	return &http.Request{
		Method: http.MethodPost,
		URL:    to,
		Header: http.Header{
			"Content-Type": {contentType},
			"User-Agent":   {"sendquota/1"},
		},
		Body:          io.NopCloser(bytes.NewReader(body)),
		ContentLength: int64(len(body)),
		// The transport resends a request that has an Idempotency-Key when a reused connection dies, if it can read the
		// body again. An attempt is one request, so GetBody stays nil.
		GetBody: nil,
	}
}

// Sign adds the headers of Standard Webhooks, version 1. The id is the same on every attempt. The timestamp is the
// attempt's, so that a retry is not too old for the receiver. While secrets are rotated there is a signature for each,
// and the receiver checks the one it knows. Without a signer there is only the id.
func Sign(h http.Header, id string, now time.Time, body []byte, signers ...*standardwebhooks.Webhook) error {
	h["Webhook-Id"] = []string{id}
	if len(signers) == 0 {
		return nil
	}
	signatures := make([]string, len(signers))
	for i, signer := range signers {
		var err error
		if signatures[i], err = signer.Sign(id, now, body); err != nil {
			return errors.New("the request could not be signed")
		}
	}
	h["Webhook-Timestamp"] = []string{strconv.FormatInt(now.Unix(), 10)}
	h["Webhook-Signature"] = []string{strings.Join(signatures, " ")}
	return nil
}

// StatusSentence returns a sentence about an answer's status, without the answer's own text, which may contain anything.
func StatusSentence(who string, status int) string {
	return strings.TrimSpace(fmt.Sprintf("%s answered %d %s", who, status, http.StatusText(status)))
}
