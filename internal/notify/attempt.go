package notify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/sendquota/sendquota/internal/outbound"
	"github.com/sendquota/sendquota/internal/store"
)

// maxRetryAfter bounds what an endpoint may ask for: no longer than the longest
// pause.
const maxRetryAfter = 8 * time.Hour

// attempt posts an event once, and says what becomes of it.
func (n *Notifier) attempt(ctx context.Context, d store.Outgoing) store.Settlement {
	s := store.Settlement{ID: d.ID, Webhook: d.Webhook, Attempt: d.Attempt}
	var asked time.Duration
	req, err := n.request(d)
	if err == nil {
		var answer outbound.Answer
		if answer, err = n.client.Do(ctx, req); err == nil {
			s.Status = answer.Status
			asked, _ = outbound.RetryAfter(answer.Header, n.now())
		}
	}
	switch {
	case err != nil:
		s.Error = err.Error()
	case s.Status >= 200 && s.Status < 300:
		s.Delivered = true
		return s
	default:
		s.Error = said(s.Status)
		s.Gone = s.Status == http.StatusGone
	}
	if s.GaveUp = s.Gone || d.Attempt > len(n.cfg.Backoff); !s.GaveUp {
		s.Retry = max(spread(n.cfg.Backoff[d.Attempt-1], d.ID, d.Attempt), min(asked, maxRetryAfter))
	}
	return s
}

// said names the status in words of our own: the endpoint's may hold anything.
func said(code int) string {
	text := strings.TrimSpace(fmt.Sprintf("the endpoint answered %d %s", code, http.StatusText(code)))
	if code >= 300 && code < 400 {
		text += "; redirects are not followed"
	}
	return text
}

// request builds the request of Standard Webhooks. The webhook-id is the same
// on every attempt, the timestamp is the attempt's own. While a secret is being
// replaced, the old one signs as well.
func (n *Notifier) request(d store.Outgoing) (*http.Request, error) {
	u, err := url.Parse(d.URL)
	if err != nil {
		return nil, errors.New("the webhook's URL can not be read") // the parser's text would quote it
	}
	id, now := d.ID.String(), n.now()
	var signatures []string
	for _, secret := range []string{d.Secret, d.OldSecret} {
		if secret == "" {
			continue
		}
		signer, err := standardwebhooks.NewWebhook(secret)
		if err != nil {
			return nil, errors.New("the request could not be signed")
		}
		signature, err := signer.Sign(id, now, d.Payload)
		if err != nil {
			return nil, errors.New("the request could not be signed")
		}
		signatures = append(signatures, signature)
	}
	return &http.Request{
		Method: http.MethodPost,
		URL:    u,
		Header: http.Header{
			"Content-Type":      {"application/json"},
			"User-Agent":        {"sendquota/1"},
			"Webhook-Id":        {id},
			"Webhook-Timestamp": {strconv.FormatInt(now.Unix(), 10)},
			"Webhook-Signature": {strings.Join(signatures, " ")},
		},
		Body:          io.NopCloser(bytes.NewReader(d.Payload)),
		ContentLength: int64(len(d.Payload)),
	}, nil
}
