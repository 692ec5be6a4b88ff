package httpapi

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"
)

// enableWebhook switches a webhook on again.
func (a *api) enableWebhook(c *call) error {
	id, err := c.bareWebhook()
	if err != nil {
		return err
	}
	w, err := a.cfg.Webhooks.Enable(c.r.Context(), c.caller.Tenant, id)
	if err != nil {
		return noSuch("webhook", err)
	}
	return a.answer(c.w, http.StatusOK, webhookViewOf(w))
}

// rotateSecret gives a webhook a new secret, and shows it.
func (a *api) rotateSecret(c *call) error {
	id, err := c.bareWebhook()
	if err != nil {
		return err
	}
	w, secret, err := a.cfg.Webhooks.Rotate(c.r.Context(), c.caller.Tenant, id)
	if err != nil {
		return noSuch("webhook", err)
	}
	v := webhookViewOf(w)
	v.Secret = secret
	return a.answer(c.w, http.StatusOK, v)
}

// testWebhook has a webhook sent an event of its own.
func (a *api) testWebhook(c *call) error {
	id, err := c.bareWebhook()
	if err != nil {
		return err
	}
	d, err := a.cfg.Webhooks.Test(c.r.Context(), c.caller.Tenant, id)
	if err != nil {
		return noSuch("webhook", err)
	}
	return a.answer(c.w, http.StatusAccepted, deliveryViewOf(d))
}

func enableWebhookDoc(s *spec) *huma.Operation {
	return &huma.Operation{
		OperationID: "enable-webhook", Method: http.MethodPost, Path: webhooksPath + "/{id}/enable", Tags: []string{tagWebhooks},
		Summary: "Switch a webhook on again",
		Description: "What waited when it was switched off is sent now. Events that happened in the meantime were not written down. " +
			"A webhook that is on forgets its failures.",
		Parameters: []*huma.Param{s.webhookID()},
		Responses:  s.responses(http.StatusOK, "The webhook is on.", webhookView{}, exampleWebhook(), invalidRequest, notFound, tooLarge, unsupportedMedia),
	}
}

func rotateSecretDoc(s *spec) *huma.Operation {
	return &huma.Operation{
		OperationID: "rotate-webhook-secret", Method: http.MethodPost, Path: webhooksPath + "/{id}/rotate-secret", Tags: []string{tagWebhooks},
		Summary: "Replace a webhook's secret",
		Description: "For 24 hours, requests bear a signature of the old secret beside that of the new one, so that the endpoint can change over at leisure. " +
			"A secret that is replaced before that stops to sign at once.",
		Parameters: []*huma.Param{s.webhookID()},
		Responses:  s.responses(http.StatusOK, "The webhook with its new secret.", webhookView{}, exampleNewWebhook(), invalidRequest, notFound, tooLarge, unsupportedMedia),
	}
}

func testWebhookDoc(s *spec) *huma.Operation {
	return &huma.Operation{
		OperationID: "test-webhook", Method: http.MethodPost, Path: webhooksPath + "/{id}/test", Tags: []string{tagWebhooks},
		Summary:     "Send a test event",
		Description: "Sends an event of type webhook.test, whatever events the webhook asks for. The list of deliveries tells what became of it.",
		Parameters:  []*huma.Param{s.webhookID()},
		Responses: s.responses(http.StatusAccepted, "The event is on its way.", deliveryView{}, exampleTestDelivery(),
			invalidRequest, notFound, webhookDisabled, tooLarge, unsupportedMedia),
	}
}
