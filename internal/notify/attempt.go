package notify

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/google/uuid"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/sendquota/sendquota/internal/outbound"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store/webhooks"
)

// maxRetryAfter bounds the Retry-After of an endpoint by the longest pause.
const maxRetryAfter = 8 * time.Hour

// attempt posts an event once, and returns the result.
func (n *Notifier) attempt(ctx context.Context, d webhooks.Outgoing) webhooks.Settlement {
	s := webhooks.Settlement{ID: d.ID, Webhook: d.Webhook, Attempt: d.Attempt}
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
		s.Error = n.failed(err)
	case s.Status >= 200 && s.Status < 300:
		s.Delivered = true
		return s
	default:
		s.Error = outbound.StatusSentence("the endpoint", s.Status)
		if s.Status >= 300 && s.Status < 400 {
			s.Error += "; redirects are not followed"
		}
		s.Gone = s.Status == http.StatusGone
	}
	if s.GaveUp = s.Gone || d.Attempt > len(n.cfg.Backoff); !s.GaveUp {
		s.Retry = max(spread(n.cfg.Backoff[d.Attempt-1], d.ID, d.Attempt), min(asked, maxRetryAfter))
	}
	return s
}

// failed returns the reason why there was no answer. Unless private addresses are allowed, it hides from tenants which
// names of the inner network exist, and their addresses.
func (n *Notifier) failed(err error) string {
	if f, ok := errors.AsType[*outbound.Failure](err); ok && f.NotFound && !n.cfg.AllowPrivateAddresses {
		return "no connection: the host has no public address"
	}
	return err.Error()
}

// request builds the request of Standard Webhooks. While a secret is being replaced, the old one signs as well.
func (n *Notifier) request(d webhooks.Outgoing) (*http.Request, error) {
	if d.Unsigned != nil {
		return nil, errors.New("the request could not be signed: the secret of the webhook cannot be read; rotate it, or ask the operator")
	}
	u, err := url.Parse(d.URL)
	if err != nil {
		return nil, errors.New("the webhook's URL cannot be read") // the parser's text would quote it
	}
	var signers []*standardwebhooks.Webhook
	for _, secret := range []string{d.Secret, d.OldSecret} {
		if secret == "" {
			continue
		}
		signer, err := standardwebhooks.NewWebhook(secret)
		if err != nil {
			return nil, errors.New("the request could not be signed")
		}
		signers = append(signers, signer)
	}
	req := outbound.Post(u, "application/json", d.Payload)
	return req, outbound.Sign(req.Header, d.ID.String(), n.now(), d.Payload, signers...)
}

// backoff returns the pauses between the attempts to deliver an event. After the last one, the event is given up. The
// sum is 23 hours and 42 minutes.
func backoff() []time.Duration {
	return []time.Duration{
		5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, 30 * time.Minute,
		time.Hour, 2 * time.Hour, 4 * time.Hour, 8 * time.Hour, 8 * time.Hour,
	}
}

// spread makes a pause up to a tenth shorter or longer.
func spread(pause time.Duration, id uuid.UUID, attempt int) time.Duration {
	return pause - pause/10 + push.Spread(pause, id[:], attempt)
}
