package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
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

func enableWebhookDoc(s *spec) *huma.Operation {
	return &huma.Operation{
		OperationID: "enable-webhook", Method: http.MethodPost, Path: webhooksPath + "/{id}/enable", Tags: []string{tagWebhooks},
		Summary: "Enable a webhook",
		Description: "Events that waited when the webhook was disabled are sent now. Events from the time in which it was disabled are not. " +
			"Enabling a webhook that is enabled clears its failures.",
		Parameters: []*huma.Param{s.webhookID()},
		Responses:  s.responses(http.StatusOK, "The webhook is enabled.", webhookView{}, exampleWebhook(), invalidRequest, notFound, tooLarge, unsupportedMedia),
	}
}

func rotateSecretDoc(s *spec) *huma.Operation {
	return &huma.Operation{
		OperationID: "rotate-webhook-secret", Method: http.MethodPost, Path: webhooksPath + "/{id}/rotate-secret", Tags: []string{tagWebhooks},
		Summary: "Replace a webhook's secret",
		Description: "For 24 hours, requests carry signatures of both the old and the new secret, so that the endpoint can change over. " +
			"Another rotation within that time ends the oldest secret at once.",
		Parameters: []*huma.Param{s.webhookID()},
		Responses:  s.responses(http.StatusOK, "The webhook with its new secret.", webhookView{}, exampleNewWebhook(), invalidRequest, notFound, tooLarge, unsupportedMedia),
	}
}

func testWebhookDoc(s *spec) *huma.Operation {
	return &huma.Operation{
		OperationID: "test-webhook", Method: http.MethodPost, Path: webhooksPath + "/{id}/test", Tags: []string{tagWebhooks},
		Summary:     "Send a test event",
		Description: "Sends an event of type webhook.test, whatever events the webhook subscribes to. The list of deliveries shows the result.",
		Parameters:  []*huma.Param{s.webhookID()},
		Responses: s.responses(http.StatusAccepted, "The event is being sent.", deliveryView{}, exampleTestDelivery(),
			invalidRequest, notFound, webhookDisabled, tooLarge, unsupportedMedia),
	}
}
