package channel

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/sendquota/sendquota/internal/duration"
	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/outbound"
	"github.com/sendquota/sendquota/internal/push"
)

const defaultTimeout = 10 * time.Second

// WebhookConfig configures a [Webhook].
type WebhookConfig struct {
	Connection

	URL string // http or https; a user and password in it become basic authentication; required

	// Secret signs the requests as Standard Webhooks demands: "whsec_" and base64, or any other text, whose bytes are
	// the key. Without it, requests are not signed.
	Secret string

	// PreviousSecret signs as well, while receivers change from it to Secret.
	PreviousSecret string
}

// Webhook is a channel that posts each push as JSON to one URL.
type Webhook struct {
	url     *url.URL
	user    *url.Userinfo               // of the URL; nil: none
	signers []*standardwebhooks.Webhook // one for each secret
	now     func() time.Time
	client  *outbound.Client
}

// NewWebhook returns a channel. Its errors name the bad setting but not the value of a URL or a secret.
func NewWebhook(cfg WebhookConfig) (*Webhook, error) {
	cfg.Connection = cfg.settled()
	u, err := url.Parse(cfg.URL)
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, cfg.fault("url", errNoURL.Error())
	}
	w := &Webhook{url: u, user: u.User, now: cfg.Now, client: cfg.client(false)}
	for _, one := range []struct{ setting, secret string }{{"secret", cfg.Secret}, {"previous_secret", cfg.PreviousSecret}} {
		if one.secret == "" {
			continue
		}
		signer, err := newSigner(one.secret)
		if err != nil {
			return nil, cfg.fault(one.setting, err.Error())
		}
		w.signers = append(w.signers, signer)
	}
	if cfg.Timeout < 0 {
		return nil, cfg.fault("timeout", "is "+duration.Words(cfg.Timeout)+", must be positive")
	}
	u.User, u.Fragment, u.RawFragment = nil, "", ""
	return w, nil
}

func newSigner(secret string) (*standardwebhooks.Webhook, error) {
	encoded, isEncoded := strings.CutPrefix(secret, "whsec_")
	if !isEncoded {
		return standardwebhooks.NewWebhookRaw([]byte(secret))
	}
	key, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || len(key) == 0 {
		return nil, errors.New("starts with whsec_, but no valid base64 follows")
	}
	return standardwebhooks.NewWebhookRaw(key)
}

// Check returns nil, because the receiver defines its addresses and messages.
func (w *Webhook) Check(string, json.RawMessage) invalid.FieldErrors { return nil }

// Send posts p once. The provider gets the request at most once, with the push's id as idempotency key.
func (w *Webhook) Send(ctx context.Context, p push.Push, attempt int) Result {
	req, err := w.request(p, attempt)
	if err != nil {
		return Result{Outcome: push.Refused, Final: true, Error: err.Error()}
	}
	r, answer := ask(ctx, w.client, req, w.now)
	r.Down = r.Down && answer.Status != http.StatusForbidden // 403 may be about the recipient
	if r.Outcome == push.Delivered {
		r.ProviderMessageID = providerID(answer.Body)
	}
	return r
}
