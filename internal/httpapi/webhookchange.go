package httpapi

import (
	"context"
	"net/http"

	"github.com/google/uuid"
)

// enableWebhook switches a webhook on again.
func (a *api) enableWebhook(c *call) error {
	return a.onWebhook(c, http.StatusOK, func(ctx context.Context, tenant, id uuid.UUID) (any, error) {
		w, err := a.cfg.Webhooks.Enable(ctx, tenant, id)
		return webhookViewOf(w), err
	})
}

// rotateSecret gives a webhook a new secret, and shows it.
func (a *api) rotateSecret(c *call) error {
	return a.onWebhook(c, http.StatusOK, func(ctx context.Context, tenant, id uuid.UUID) (any, error) {
		w, secret, err := a.cfg.Webhooks.Rotate(ctx, tenant, id)
		v := webhookViewOf(w)
		v.Secret = secret
		return v, err
	})
}

// testWebhook has a webhook sent an event of its own.
func (a *api) testWebhook(c *call) error {
	return a.onWebhook(c, http.StatusAccepted, func(ctx context.Context, tenant, id uuid.UUID) (any, error) {
		d, err := a.cfg.Webhooks.Test(ctx, tenant, id)
		return deliveryViewOf(d), err
	})
}
