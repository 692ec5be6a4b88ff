package httpapi

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
)

func (h *webhooks) routes(s *spec) []operation {
	hook := webhookViewOf(push.Webhook{
		ID: uuid.MustParse(exampleID), URL: "https://example.com/hooks/sendquota", Events: []push.Event{push.EventSent, push.EventFailed}, CreatedAt: exampleTime(0),
	}, "")
	made, disabled := hook, hook
	made.Secret = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD5NdAxrpTTdk="
	disabled.Status, disabled.Failures, disabled.DisabledReason = "disabled", 42, "42 attempts in a row have failed, since 2026-12-01T08:00:00Z"
	disabled.FailingSince, disabled.DisabledAt = maybe(exampleTime(0)), maybe(exampleTime(72*time.Hour))
	return []operation{{
		id: "create-webhook", method: http.MethodPost, path: webhooksPath, tag: tagWebhooks, scope: push.ScopeHooks, serve: h.createWebhook,
		summary: "Create a webhook",
		description: "From now on, each event that the webhook subscribes to is posted to the URL: signed as in Standard Webhooks, at least once, in order for each push, " +
			"and repeated for a day until the endpoint answers 2xx. The answer has the secret that verifies the signatures. It is shown only once.",
		body:   webhookFields.body(s, map[string]any{"url": "https://example.com/hooks/sendquota", "events": []string{"push.sent", "push.failed"}}),
		status: http.StatusCreated, answer: "The webhook is enabled.", example: made, problems: []kind{tooManyWebhooks, notConfigured},
		finish: func(all map[string]*huma.Response) { addHeader(all["201"], "Location", "The path of the webhook.") },
	}, {
		id: "list-webhooks", method: http.MethodGet, path: webhooksPath, tag: tagWebhooks, scope: push.ScopeHooks, serve: h.listWebhooks,
		summary: "List webhooks", description: "Lists all webhooks of the tenant, oldest first.",
		status: http.StatusOK, answer: "The webhooks.", example: webhooksView{[]webhookView{hook}},
	}, {
		id: "get-webhook", method: http.MethodGet, path: webhooksPath + "/{id}", tag: tagWebhooks, scope: push.ScopeHooks, serve: h.getWebhook,
		summary: "Read a webhook", description: "Returns the webhook, its recent failures, and whether and why it is disabled.",
		status: http.StatusOK, answer: "The webhook.", example: disabled, problems: []kind{notFound},
	}, {
		id: "delete-webhook", method: http.MethodDelete, path: webhooksPath + "/{id}", tag: tagWebhooks, scope: push.ScopeHooks, serve: h.deleteWebhook,
		summary: "Delete a webhook", description: "No new request is sent; one in progress may still arrive. The deliveries of the webhook can no longer be read.",
		status: http.StatusNoContent, answer: "The webhook is deleted.", problems: []kind{notFound},
	}, {
		id: "test-webhook", method: http.MethodPost, path: webhooksPath + "/{id}/test", tag: tagWebhooks, scope: push.ScopeHooks, serve: h.testWebhook,
		summary:     "Send a test event",
		description: "Sends an event of type webhook.test, regardless of the events that the webhook subscribes to. The list of deliveries shows the result.",
		status:      http.StatusAccepted, answer: "The event is being sent.", example: deliveryViewOf(push.Delivery{
			ID: uuid.MustParse(exampleOtherID), Event: push.EventTest, Status: push.DeliveryWaiting, NextAt: exampleTime(0), CreatedAt: exampleTime(0),
			Payload: json.RawMessage(`{"type": "webhook.test", "timestamp": "2026-12-01T08:00:00Z", "data": {"webhook_id": "` + exampleID + `"}}`),
		}), problems: []kind{notFound, webhookDisabled},
	}, {
		id: "rotate-webhook-secret", method: http.MethodPost, path: webhooksPath + "/{id}/rotate-secret", tag: tagWebhooks, scope: push.ScopeHooks, serve: h.rotateSecret,
		summary: "Replace a webhook's secret",
		description: "For 24 hours, requests carry signatures of both the old and the new secret, so that the endpoint can switch. " +
			"Another rotation within that time ends the oldest secret immediately.",
		status: http.StatusOK, answer: "The webhook with its new secret.", example: made, problems: []kind{notFound, notConfigured},
	}, {
		id: "enable-webhook", method: http.MethodPost, path: webhooksPath + "/{id}/enable", tag: tagWebhooks, scope: push.ScopeHooks, serve: h.enableWebhook,
		summary: "Enable a webhook",
		description: "Events that waited when the webhook was disabled are sent now. Events that occurred while it was disabled are not sent. " +
			"Enabling a webhook that is enabled clears its failures.",
		status: http.StatusOK, answer: "The webhook is enabled.", example: hook, problems: []kind{notFound},
	}}
}

func (h *webhooks) deliveryRoutes(s *spec) []operation {
	delivery := deliveryViewOf(push.Delivery{
		ID: uuid.MustParse(exampleOtherID), Push: uuid.MustParse(exampleID), Event: push.EventSent, Status: push.DeliveryWaiting, Attempts: 2,
		NextAt: exampleTime(37 * time.Second), LastStatus: 503, LastError: "the endpoint answered 503 Service Unavailable", CreatedAt: exampleTime(time.Second),
		Payload: json.RawMessage(`{"type": "push.sent", "timestamp": "2026-12-01T08:00:01Z", "data": {"id": "` + exampleID + `", "status": "sent", "recipient": "user-42"}}`),
	})
	return []operation{{
		id: "list-webhook-deliveries", method: http.MethodGet, path: webhooksPath + "/{id}/deliveries", tag: tagWebhooks, scope: push.ScopeHooks, serve: h.listDeliveries,
		summary: "List the deliveries of a webhook",
		description: "Lists past and pending deliveries, newest first. Filters can be combined; an empty one counts as absent. " +
			"Deliveries are kept for a week, or as configured. A page may end early: the list continues while there is a next_page_token.",
		query:  &deliveriesParams,
		status: http.StatusOK, answer: "A page of deliveries.", example: deliveriesView{Deliveries: []deliveryView{delivery}}, problems: []kind{notFound},
	}, {
		id: "replay-webhook-delivery", method: http.MethodPost, path: webhooksPath + "/{id}/deliveries/{delivery}/replay", tag: tagWebhooks, scope: push.ScopeHooks, serve: h.replay, memory: pushBytes,
		summary:     "Send an event again",
		description: "Sends the event now, with the same webhook-id and body, regardless of its status. A delivery that is being sent is not changed.",
		status:      http.StatusAccepted, answer: "The event is being sent.", example: delivery, problems: []kind{notFound, webhookDisabled},
	}, {
		id: "replay-failed-webhook-deliveries", method: http.MethodPost, path: webhooksPath + "/{id}/replay", tag: tagWebhooks, scope: push.ScopeHooks, serve: h.replayFailed,
		summary: "Send failed events again", description: "Sends all events since a time whose delivery has failed, oldest first.",
		body:   sinceFields.body(s, map[string]any{"since": timeExample}),
		status: http.StatusAccepted, answer: "The events are being sent.", example: replayedView{3}, problems: []kind{notFound, webhookDisabled},
	}}
}
