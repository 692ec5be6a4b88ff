package webhooks

import (
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/rest"
	"github.com/sendquota/sendquota/internal/webhook"
)

// deliveryView is the delivery of an event to a webhook.
type deliveryView struct {
	ID            string                 `json:"id" format:"uuid" doc:"The webhook-id of its requests."`
	Event         webhook.Event          `json:"event"`
	PushID        *string                `json:"push_id" format:"uuid" nullable:"true" doc:"The push that the event is about; null for a test."`
	Status        webhook.DeliveryStatus `json:"status" enum:"waiting,sending,delivered,failed" doc:"failed: sendquota gave up, after attempts for a day or a 410."`
	Attempts      int                    `json:"attempts"`
	NextAttemptAt *string                `json:"next_attempt_at" format:"date-time" nullable:"true" doc:"While the delivery waits: the time of the next attempt, which may be later if an earlier event of the push is pending. null while the webhook is disabled."`
	LastStatus    *int                   `json:"last_status" nullable:"true" doc:"The HTTP status of the last answer; null: there was none."`
	LastError     string                 `json:"last_error" doc:"Why the last attempt failed."`
	CreatedAt     string                 `json:"created_at" format:"date-time"`
	EndedAt       *string                `json:"ended_at" format:"date-time" nullable:"true"`
	Payload       rest.RawObject         `json:"payload" doc:"The body of its requests."`
}

type deliveriesView struct {
	Deliveries    []deliveryView `json:"deliveries"`
	NextPageToken string         `json:"next_page_token" doc:"The page_token of the next page; empty only at the end of the list."`
}

func deliveryViewOf(d webhook.Delivery) deliveryView {
	v := deliveryView{
		ID: d.ID.String(), Event: d.Event, Status: d.Status, Attempts: d.Attempts, LastError: d.LastError,
		CreatedAt: rest.Stamp(d.CreatedAt), EndedAt: rest.MaybeTime(d.EndedAt), Payload: rest.RawObject(d.Payload),
	}
	if d.Push != uuid.Nil {
		id := d.Push.String()
		v.PushID = &id
	}
	if d.Status == webhook.Waiting {
		v.NextAttemptAt = rest.MaybeTime(d.NextAt)
	}
	if d.LastStatus != 0 {
		v.LastStatus = &d.LastStatus
	}
	return v
}

// deliveryFilter selects deliveries.
type deliveryFilter struct {
	webhook.DeliveryFilter
	rest.PageParams
}

var deliveriesParams = rest.Pages(
	rest.Row("status", rest.Optional, rest.OneOf(func(q *deliveryFilter, s webhook.DeliveryStatus) { q.Status = s }, webhook.DeliveryStatuses...), "Only entries with this status.", nil),
	rest.Row("event", rest.Optional, rest.OneOf(func(q *deliveryFilter, e webhook.Event) { q.Event = e }, append(slices.Clone(webhook.Events), webhook.EventTest)...), "Only deliveries of this event.", nil),
	rest.Row("push", rest.Optional, rest.Identifier(func(q *deliveryFilter, id uuid.UUID) { q.Push = id }), "Only deliveries about this push.", nil),
)

// listDeliveries answers with a page of a webhook's deliveries.
func (h *webhooks) listDeliveries(c *rest.Call) error {
	return rest.List(c, &deliveriesParams, func(q deliveryFilter, before int64) ([]webhook.Delivery, *int64, error) {
		page, err := h.svc.Deliveries(c.Request.Context(), c.Caller.Tenant, c.ID, q.DeliveryFilter, before, q.Size)
		return page.Deliveries, rest.OrNowhere(page.Next), rest.NoSuch("webhook", err)
	}, func(all []webhook.Delivery, next string) any {
		return deliveriesView{rest.ViewsOf(all, deliveryViewOf), next}
	})
}

// replay sends one event again.
func (h *webhooks) replay(c *rest.Call) error {
	d, err := h.svc.Replay(c.Request.Context(), c.Caller.Tenant, c.ID, c.Part)
	if err != nil {
		return rest.NoSuch("webhook or delivery", err)
	}
	return c.Answer(http.StatusAccepted, deliveryViewOf(d))
}

// sinceFields is the body of a replay of failed deliveries.
var sinceFields = rest.Table[time.Time]{SchemaName: "SinceForm", Fields: []rest.Field[time.Time]{
	rest.Row("since", rest.Required, rest.Moment(func(since *time.Time, t time.Time) { *since = t }), "Only events at or after this time, with a zone.", rest.TimeExample),
}}

type replayedView struct {
	Replayed int `json:"replayed" doc:"The number of events that are sent again, at most ten thousand; repeat the request until it is 0."`
}

// replayFailed sends all failed events again.
func (h *webhooks) replayFailed(c *rest.Call) error {
	var since time.Time
	if err := sinceFields.ReadBody(c, &since, &c.Errors); err != nil {
		return err
	}
	n, err := h.svc.ReplayFailed(c.Request.Context(), c.Caller.Tenant, c.ID, since)
	if err != nil {
		return rest.NoSuch("webhook", err)
	}
	return c.Answer(http.StatusAccepted, replayedView{n})
}
