package webhooks

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/rest"
	"github.com/sendquota/sendquota/internal/webhook"
)

func (h *webhooks) routes(s *rest.Spec) []rest.Operation {
	hook := webhookViewOf(webhook.Webhook{
		ID: uuid.MustParse(rest.ExampleID), URL: "https://example.com/hooks/sendquota", Events: []webhook.Event{webhook.EventSent, webhook.EventFailed}, CreatedAt: rest.ExampleTime(0),
	}, "")
	made, disabled := hook, hook
	made.Secret = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD5NdAxrpTTdk="
	disabled.Status, disabled.Failures, disabled.DisabledReason = "disabled", 42, "42 attempts in a row have failed, since 2026-12-01T08:00:00Z"
	disabled.FailingSince, disabled.DisabledAt = rest.MaybeTime(rest.ExampleTime(0)), rest.MaybeTime(rest.ExampleTime(72*time.Hour))
	return []rest.Operation{{
		ID: "create-webhook", Method: http.MethodPost, Path: Path, Tag: Tag, Scope: push.ScopeHooks, Serve: h.createWebhook,
		Summary: "Create a webhook",
		Description: "From now on, each event that the webhook subscribes to is posted to the URL: signed as in Standard Webhooks, at least once, in order for each push, " +
			"and repeated for a day until the endpoint answers 2xx. The answer has the secret that verifies the signatures. It is shown only once.",
		Body:   webhookFields.Body(s, map[string]any{"url": "https://example.com/hooks/sendquota", "events": []string{"push.sent", "push.failed"}}),
		Status: http.StatusCreated, Answer: "The webhook is enabled.", Example: made, Problems: []rest.Kind{TooMany, NotConfigured},
		Finish: func(all map[string]*huma.Response) {
			rest.AddHeader(all["201"], "Location", "The path of the webhook.")
		},
	}, {
		ID: "list-webhooks", Method: http.MethodGet, Path: Path, Tag: Tag, Scope: push.ScopeHooks, Serve: h.listWebhooks,
		Summary: "List webhooks", Description: "Lists all webhooks of the tenant, oldest first.",
		Status: http.StatusOK, Answer: "The webhooks.", Example: webhooksView{[]webhookView{hook}},
	}, {
		ID: "get-webhook", Method: http.MethodGet, Path: Path + "/{id}", Tag: Tag, Scope: push.ScopeHooks, Serve: h.getWebhook,
		Summary: "Read a webhook", Description: "Returns the webhook, its recent failures, and whether and why it is disabled.",
		Status: http.StatusOK, Answer: "The webhook.", Example: disabled, Problems: []rest.Kind{rest.NotFound},
	}, {
		ID: "delete-webhook", Method: http.MethodDelete, Path: Path + "/{id}", Tag: Tag, Scope: push.ScopeHooks, Serve: h.deleteWebhook,
		Summary: "Delete a webhook", Description: "No new request is sent; one in progress may still arrive. The deliveries of the webhook can no longer be read.",
		Status: http.StatusNoContent, Answer: "The webhook is deleted.", Problems: []rest.Kind{rest.NotFound},
	}, {
		ID: "test-webhook", Method: http.MethodPost, Path: Path + "/{id}/test", Tag: Tag, Scope: push.ScopeHooks, Serve: h.testWebhook,
		Summary:     "Send a test event",
		Description: "Sends an event of type webhook.test, regardless of the events that the webhook subscribes to. The list of deliveries shows the result.",
		Status:      http.StatusAccepted, Answer: "The event is being sent.", Example: deliveryViewOf(webhook.Delivery{
			ID: uuid.MustParse(rest.ExampleOtherID), Event: webhook.EventTest, Status: webhook.Waiting, NextAt: rest.ExampleTime(0), CreatedAt: rest.ExampleTime(0),
			Payload: json.RawMessage(`{"type": "webhook.test", "timestamp": "2026-12-01T08:00:00Z", "data": {"webhook_id": "` + rest.ExampleID + `"}}`),
		}), Problems: []rest.Kind{rest.NotFound, Disabled},
	}, {
		ID: "rotate-webhook-secret", Method: http.MethodPost, Path: Path + "/{id}/rotate-secret", Tag: Tag, Scope: push.ScopeHooks, Serve: h.rotateSecret,
		Summary: "Replace a webhook's secret",
		Description: "For 24 hours, requests carry signatures of both the old and the new secret, so that the endpoint can switch. " +
			"Another rotation within that time ends the oldest secret immediately.",
		Status: http.StatusOK, Answer: "The webhook with its new secret.", Example: made, Problems: []rest.Kind{rest.NotFound, NotConfigured},
	}, {
		ID: "enable-webhook", Method: http.MethodPost, Path: Path + "/{id}/enable", Tag: Tag, Scope: push.ScopeHooks, Serve: h.enableWebhook,
		Summary: "Enable a webhook",
		Description: "Events that waited when the webhook was disabled are sent now. Events that occurred while it was disabled are not sent. " +
			"Enabling a webhook that is enabled clears its failures.",
		Status: http.StatusOK, Answer: "The webhook is enabled.", Example: hook, Problems: []rest.Kind{rest.NotFound},
	}}
}

func (h *webhooks) deliveryRoutes(s *rest.Spec) []rest.Operation {
	delivery := deliveryViewOf(webhook.Delivery{
		ID: uuid.MustParse(rest.ExampleOtherID), Push: uuid.MustParse(rest.ExampleID), Event: webhook.EventSent, Status: webhook.Waiting, Attempts: 2,
		NextAt: rest.ExampleTime(37 * time.Second), LastStatus: 503, LastError: "the endpoint answered 503 Service Unavailable", CreatedAt: rest.ExampleTime(time.Second),
		Payload: json.RawMessage(`{"type": "push.sent", "timestamp": "2026-12-01T08:00:01Z", "data": {"id": "` + rest.ExampleID + `", "status": "sent", "recipient": "user-42"}}`),
	})
	return []rest.Operation{{
		ID: "list-webhook-deliveries", Method: http.MethodGet, Path: Path + "/{id}/deliveries", Tag: Tag, Scope: push.ScopeHooks, Serve: h.listDeliveries,
		Summary: "List the deliveries of a webhook",
		Description: "Lists past and pending deliveries, newest first. Filters can be combined; an empty one counts as absent. " +
			"Deliveries are kept for a week, or as configured. A page may end early: the list continues while there is a next_page_token.",
		Query:  &deliveriesParams,
		Status: http.StatusOK, Answer: "A page of deliveries.", Example: deliveriesView{Deliveries: []deliveryView{delivery}}, Problems: []rest.Kind{rest.NotFound},
	}, {
		ID: "replay-webhook-delivery", Method: http.MethodPost, Path: Path + "/{id}/deliveries/{delivery}/replay", Tag: Tag, Scope: push.ScopeHooks, Serve: h.replay, Memory: rest.PushBytes,
		Summary:     "Send an event again",
		Description: "Sends the event now, with the same webhook-id and body, regardless of its status. A delivery that is being sent is not changed.",
		Status:      http.StatusAccepted, Answer: "The event is being sent.", Example: delivery, Problems: []rest.Kind{rest.NotFound, Disabled},
	}, {
		ID: "replay-failed-webhook-deliveries", Method: http.MethodPost, Path: Path + "/{id}/replay", Tag: Tag, Scope: push.ScopeHooks, Serve: h.replayFailed,
		Summary: "Send failed events again", Description: "Sends all events since a time whose delivery has failed, oldest first.",
		Body:   sinceFields.Body(s, map[string]any{"since": rest.TimeExample}),
		Status: http.StatusAccepted, Answer: "The events are being sent.", Example: replayedView{3}, Problems: []rest.Kind{rest.NotFound, Disabled},
	}}
}
