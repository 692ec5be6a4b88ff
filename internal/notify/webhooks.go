package notify

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/outbound"
	"github.com/sendquota/sendquota/internal/webhook"
)

// A replaced secret still signs for overlap.
const overlap = 24 * time.Hour

// maxReplayed is the maximum number of deliveries that one request replays.
const maxReplayed = 10_000

// maxURL is the maximum size of a webhook's URL in bytes.
const maxURL = 2048

// Webhooks lets tenants set up, test and replay their webhooks. Every method returns [push.ErrNotFound] for another
// tenant's webhook.
type Webhooks struct {
	unchanged
	secrets    secrets
	deliveries deliveries
	cfg        WebhooksConfig
}

// Store is the part of the store that a [Webhooks] uses.
type Store interface {
	unchanged
	secrets
	deliveries
}

// unchanged are the methods of the store that the API uses unchanged.
type unchanged interface {
	Webhook(ctx context.Context, tenant, id uuid.UUID) (webhook.Webhook, error)
	Webhooks(ctx context.Context, tenant uuid.UUID) ([]webhook.Webhook, error)
	DeleteWebhook(ctx context.Context, tenant, id uuid.UUID) error
	EnableWebhook(ctx context.Context, tenant, id uuid.UUID) (webhook.Webhook, error)
}

// secrets stores the secrets of webhooks.
type secrets interface {
	CreateWebhook(ctx context.Context, w webhook.Webhook, secret string, most int) (webhook.Webhook, error)
	RotateWebhookSecret(ctx context.Context, tenant, id uuid.UUID, secret string, overlap time.Duration) (webhook.Webhook, error)
}

// deliveries lists, adds and replays deliveries.
type deliveries interface {
	AddTestDelivery(ctx context.Context, w webhook.Webhook) (webhook.Delivery, error)
	Deliveries(ctx context.Context, tenant, hook uuid.UUID, f webhook.DeliveryFilter, before int64, limit int) (webhook.DeliveryPage, error)
	Replay(ctx context.Context, tenant, hook, id uuid.UUID) (webhook.Delivery, error)
	ReplayFailed(ctx context.Context, tenant, hook uuid.UUID, since time.Time, limit int) (int, error)
}

// WebhooksConfig limits the webhooks of tenants.
type WebhooksConfig struct {
	MaxPerTenant          int
	AllowPrivateAddresses bool
}

// NewWebhooks returns the webhooks in a store.
func NewWebhooks(st Store, cfg WebhooksConfig) *Webhooks {
	return &Webhooks{unchanged: st, secrets: st, deliveries: st, cfg: cfg}
}

// URLFault returns the fault of a webhook's URL, or "".
func (s *Webhooks) URLFault(raw string) string {
	u, err := url.Parse(raw)
	switch {
	case len(raw) > maxURL:
		return "must have at most 2048 bytes"
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "":
		return "must be an absolute URL with https:// or http:// and a host"
	case u.User != nil:
		return "must have no user and password; the signature proves who calls"
	case u.Fragment != "":
		return "must have no fragment; it is never sent"
	case !validPort(u.Port()):
		return "must have a port from 1 to 65535, or none"
	case strings.Contains(u.Hostname(), "%"):
		return "must have an address without a zone; zones have a meaning on one machine only"
	case s.cfg.AllowPrivateAddresses:
		return ""
	}
	fault, private := outbound.HostFault(u.Hostname())
	if private {
		fault += " (the operator can allow it: webhooks.allow_private_addresses)"
	}
	return fault
}

// validPort reports whether the port of a URL, which is absent or made of digits, is valid.
func validPort(port string) bool {
	n, err := strconv.ParseUint(port, 10, 16)
	return port == "" || err == nil && n > 0
}

// Create creates a webhook for a URL without fault, and returns it with its secret, which is never shown again.
func (s *Webhooks) Create(ctx context.Context, tenant uuid.UUID, url string, events []webhook.Event) (w webhook.Webhook, secret string, err error) {
	secret = newSecret()
	w, err = s.secrets.CreateWebhook(ctx, webhook.Webhook{ID: uuid.Must(uuid.NewV7()), Tenant: tenant, URL: url, Events: events}, secret, s.cfg.MaxPerTenant)
	return w, secret, err
}

// Rotate gives a webhook a new secret, and returns it. For [overlap], requests are signed with both secrets.
func (s *Webhooks) Rotate(ctx context.Context, tenant, id uuid.UUID) (w webhook.Webhook, secret string, err error) {
	secret = newSecret()
	w, err = s.secrets.RotateWebhookSecret(ctx, tenant, id, secret, overlap)
	return w, secret, err
}

// newSecret returns 256 random bits, in the form of Standard Webhooks.
func newSecret() string {
	var secret [32]byte
	_, _ = rand.Read(secret[:]) // never fails
	return "whsec_" + base64.StdEncoding.EncodeToString(secret[:])
}

// Test sends a test event to a webhook, whatever events it subscribes to. A disabled webhook gets none:
// [webhook.ErrOff].
func (s *Webhooks) Test(ctx context.Context, tenant, id uuid.UUID) (webhook.Delivery, error) {
	w, err := s.enabled(ctx, tenant, id)
	if err != nil {
		return webhook.Delivery{}, err
	}
	return s.deliveries.AddTestDelivery(ctx, w)
}

// Deliveries returns the past and waiting deliveries of a webhook, the newest first. It may return fewer than
// limit although there are more. While the webhook is disabled, none has a next time.
func (s *Webhooks) Deliveries(ctx context.Context, tenant, id uuid.UUID, f webhook.DeliveryFilter, before int64, limit int) (webhook.DeliveryPage, error) {
	w, err := s.Webhook(ctx, tenant, id)
	if err != nil {
		return webhook.DeliveryPage{}, err
	}
	page, err := s.deliveries.Deliveries(ctx, tenant, id, f, before, limit)
	if !w.DisabledAt.IsZero() {
		for i := range page.Deliveries {
			page.Deliveries[i].NextAt = time.Time{}
		}
	}
	return page, err
}

// Replay sends an event again.
func (s *Webhooks) Replay(ctx context.Context, tenant, id, delivery uuid.UUID) (webhook.Delivery, error) {
	if _, err := s.enabled(ctx, tenant, id); err != nil {
		return webhook.Delivery{}, err
	}
	return s.deliveries.Replay(ctx, tenant, id, delivery)
}

// ReplayFailed sends the given-up events since a time again, up to ten thousand of them, the oldest first. It returns
// their number.
func (s *Webhooks) ReplayFailed(ctx context.Context, tenant, id uuid.UUID, since time.Time) (int, error) {
	if _, err := s.enabled(ctx, tenant, id); err != nil {
		return 0, err
	}
	return s.deliveries.ReplayFailed(ctx, tenant, id, since, maxReplayed)
}

func (s *Webhooks) enabled(ctx context.Context, tenant, id uuid.UUID) (webhook.Webhook, error) {
	w, err := s.Webhook(ctx, tenant, id)
	if err == nil && !w.DisabledAt.IsZero() {
		err = webhook.ErrOff
	}
	return w, err
}
