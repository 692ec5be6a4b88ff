package httpapi

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store"
)

// deliveryView is an event on its way to a webhook.
type deliveryView struct {
	ID            string               `json:"id" format:"uuid" doc:"The webhook-id of its requests."`
	Event         push.Event           `json:"event"`
	PushID        *string              `json:"push_id" format:"uuid" nullable:"true" doc:"Which push it is about; null for a test."`
	Status        store.DeliveryStatus `json:"status" enum:"waiting,sending,delivered,failed" doc:"failed: given up, after attempts over a day or a 410."`
	Attempts      int                  `json:"attempts"`
	NextAttemptAt *string              `json:"next_attempt_at" format:"date-time" nullable:"true" doc:"While it waits: when it is tried, or whether it still has to wait for an earlier event of the push; null while the webhook is disabled."`
	LastStatus    *int                 `json:"last_status" nullable:"true" doc:"The HTTP status of the last answer; null where there was none."`
	LastError     string               `json:"last_error" doc:"Why the last attempt failed."`
	CreatedAt     string               `json:"created_at" format:"date-time"`
	EndedAt       *string              `json:"ended_at" format:"date-time" nullable:"true"`
	Payload       json.RawMessage      `json:"payload" doc:"The body of its requests."`
}

// TransformSchema says that the payload is an object.
func (*deliveryView) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	s.Properties["payload"] = &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true, Description: s.Properties["payload"].Description}
	return s
}

type deliveriesView struct {
	Deliveries    []deliveryView `json:"deliveries"`
	NextPageToken string         `json:"next_page_token" doc:"For page_token, to get the next page; empty at the end of the list, and only there."`
}

func deliveryViewOf(d store.Delivery) deliveryView {
	v := deliveryView{
		ID: d.ID.String(), Event: d.Event, Status: d.Status, Attempts: d.Attempts, LastError: d.LastError,
		CreatedAt: stamp(d.CreatedAt), EndedAt: maybe(d.EndedAt), Payload: d.Payload,
	}
	if d.Push != uuid.Nil {
		id := d.Push.String()
		v.PushID = &id
	}
	if d.Status == store.DeliveryWaiting {
		v.NextAttemptAt = maybe(d.NextAt)
	}
	if d.LastStatus != 0 {
		v.LastStatus = &d.LastStatus
	}
	return v
}

// listDeliveries answers with a page of what a webhook was sent.
func (a *api) listDeliveries(c *call) error {
	var bad faults
	q := readQuery(c.r, &bad, "status", "event", "push", "page_size", "page_token")
	id := c.pathID("id", &bad)
	f := store.DeliveryFilter{
		Status: store.DeliveryStatus(q.oneOf("status", deliveryStatuses()...)),
		Event:  push.Event(q.oneOf("event", toldEvents()...)),
		Push:   q.id("push"),
	}
	size := q.int("page_size", defaultPageSize, 1, maxPageSize)
	before, ok := readDeliveriesToken(q.values.Get("page_token"), c.caller.Tenant, id, f)
	if !ok && len(bad.list) == 0 { // else other faults have changed the filter
		q.bad("page_token", "is not a token of this list, with these filters", q.values.Get("page_token"))
	}
	if err := bad.err(); err != nil {
		return err
	}
	if err := c.reserve(pageBytes); err != nil {
		return err
	}
	page, err := a.cfg.Webhooks.Deliveries(c.r.Context(), c.caller.Tenant, id, f, before, size)
	if err != nil {
		return noSuch("webhook", err)
	}
	return c.compute(func() error {
		v := deliveriesView{Deliveries: make([]deliveryView, len(page.Deliveries))}
		for i, d := range page.Deliveries {
			v.Deliveries[i] = deliveryViewOf(d)
		}
		if page.Next != 0 {
			v.NextPageToken = deliveriesToken(page.Next, c.caller.Tenant, id, f)
		}
		return a.answer(c.w, http.StatusOK, v)
	})
}

func deliveryStatuses() []string {
	names := make([]string, len(store.DeliveryStatuses))
	for i, s := range store.DeliveryStatuses {
		names[i] = string(s)
	}
	return names
}

func toldEvents() []string { return append(eventNames(push.Events...), string(push.EventTest)) }

// deliveriesToken writes a position in a list of deliveries: see pageToken.
func deliveriesToken(seq int64, tenant, webhook uuid.UUID, f store.DeliveryFilter) string {
	return sealed(binary.BigEndian.AppendUint64(nil, uint64(seq)), tenant, deliveryList(webhook, f))
}

func readDeliveriesToken(token string, tenant, webhook uuid.UUID, f store.DeliveryFilter) (before int64, ok bool) {
	if token == "" {
		return 0, true
	}
	b, ok := unsealed(token, 8, tenant, deliveryList(webhook, f))
	if !ok {
		return 0, false
	}
	return int64(binary.BigEndian.Uint64(b)), true
}

func deliveryList(webhook uuid.UUID, f store.DeliveryFilter) string {
	return fmt.Sprintf("deliveries %s %q %q %s", webhook, f.Status, f.Event, f.Push)
}

// replay sends one event again.
func (a *api) replay(c *call) error {
	var bad faults
	readQuery(c.r, &bad)
	id, delivery := c.pathID("id", &bad), c.pathID("delivery", &bad)
	if err := c.reserve(pushBytes); err != nil {
		return err
	}
	if err := c.noBody(&bad); err != nil {
		return err
	}
	if err := bad.err(); err != nil {
		return err
	}
	d, err := a.cfg.Webhooks.Replay(c.r.Context(), c.caller.Tenant, id, delivery)
	if err != nil {
		return noSuch("webhook or delivery", err)
	}
	return a.answer(c.w, http.StatusAccepted, deliveryViewOf(d))
}

// sinceForm is the schema of a replay of all that failed.
type sinceForm struct {
	Since string `json:"since" format:"date-time" doc:"Events from then on, with a zone." example:"2026-12-01T09:00:00Z"`
}

type replayedView struct {
	Replayed int `json:"replayed" doc:"How many events are on their way again, ten thousand at most; ask again until it is 0."`
}

// replayFailed sends all that was given up again.
func (a *api) replayFailed(c *call) error {
	var bad faults
	readQuery(c.r, &bad)
	id := c.pathID("id", &bad)
	var (
		since time.Time
		f     fields
	)
	if _, err := c.object(maxBody, &bad, func(r *reader) { since, f = readSince(r) }); err != nil {
		return err
	}
	bad.addAll("body", f.faults)
	if err := bad.err(); err != nil {
		return err
	}
	n, err := a.cfg.Webhooks.ReplayFailed(c.r.Context(), c.caller.Tenant, id, since)
	if err != nil {
		return noSuch("webhook", err)
	}
	return a.answer(c.w, http.StatusAccepted, replayedView{n})
}

// readSince reads the only member of a sinceForm.
func readSince(r *reader) (since time.Time, f fields) {
	given := false
	for name := range r.members {
		raw := r.value()
		switch {
		case r.err != nil:
			return since, f
		case string(name) == "since":
			given = true
			since, _ = f.time("since", raw)
		default:
			f.unknown(name, raw)
		}
	}
	if !given {
		f.missing("since")
	}
	return since, f
}

func exampleDelivery() deliveryView {
	return deliveryViewOf(store.Delivery{
		ID: uuid.MustParse(exampleOtherID), Push: uuid.MustParse(exampleID), Event: push.EventSent, Status: store.DeliveryWaiting, Attempts: 2,
		NextAt: exampleTime(37 * time.Second), LastStatus: 503, LastError: "the endpoint answered 503 Service Unavailable", CreatedAt: exampleTime(time.Second),
		Payload: json.RawMessage(`{"type": "push.sent", "timestamp": "2026-12-01T08:00:01Z", "data": {"id": "` + exampleID + `", "status": "sent", "recipient": "user-42"}}`),
	})
}

func exampleTestDelivery() deliveryView {
	return deliveryViewOf(store.Delivery{
		ID: uuid.MustParse(exampleOtherID), Event: push.EventTest, Status: store.DeliveryWaiting, NextAt: exampleTime(0), CreatedAt: exampleTime(0),
		Payload: json.RawMessage(`{"type": "webhook.test", "timestamp": "2026-12-01T08:00:00Z", "data": {"webhook_id": "` + exampleID + `"}}`),
	})
}

func listDeliveriesDoc(s *spec) *huma.Operation {
	return &huma.Operation{
		OperationID: "list-webhook-deliveries", Method: http.MethodGet, Path: webhooksPath + "/{id}/deliveries", Tags: []string{tagWebhooks},
		Summary: "List what a webhook was sent",
		Description: "And what it is to be sent, the newest first. Filters can be combined; an empty one counts as absent. " +
			"Deliveries are kept for a week, or as configured. As with pushes, a page may end early: the list goes on as long as there is a next_page_token.",
		Parameters: []*huma.Param{
			s.webhookID(),
			s.enum("status", "Only those in this state.", deliveryStatuses()...),
			s.enum("event", "Only this event.", toldEvents()...),
			s.param("query", "push", "Only those about this push.", &huma.Schema{Type: huma.TypeString, Format: "uuid"}),
			s.int("page_size", "How many deliveries to answer with, at most.", defaultPageSize, 1, maxPageSize),
			s.query("page_token", "The next_page_token of the page before. It goes with the same filters.", ""),
		},
		Responses: s.responses(http.StatusOK, "A page of deliveries.", deliveriesView{}, deliveriesView{Deliveries: []deliveryView{exampleDelivery()}}, invalidRequest, notFound),
	}
}

func replayDoc(s *spec) *huma.Operation {
	delivery := s.param("path", "delivery", "The delivery's id.", &huma.Schema{Type: huma.TypeString, Format: "uuid"})
	delivery.Example = exampleOtherID
	return &huma.Operation{
		OperationID: "replay-webhook-delivery", Method: http.MethodPost, Path: webhooksPath + "/{id}/deliveries/{delivery}/replay", Tags: []string{tagWebhooks},
		Summary:     "Send an event again",
		Description: "Under the same webhook-id and with the same body, now, whatever became of it before. One that is being sent is left alone.",
		Parameters:  []*huma.Param{s.webhookID(), delivery},
		Responses: s.responses(http.StatusAccepted, "The event is on its way.", deliveryView{}, exampleDelivery(),
			invalidRequest, notFound, webhookDisabled, tooLarge, unsupportedMedia),
	}
}

func replayFailedDoc(s *spec) *huma.Operation {
	return &huma.Operation{
		OperationID: "replay-failed-webhook-deliveries", Method: http.MethodPost, Path: webhooksPath + "/{id}/replay", Tags: []string{tagWebhooks},
		Summary:     "Send again what was given up",
		Description: "All events since a time that were given up, the oldest first.",
		Parameters:  []*huma.Param{s.webhookID()},
		RequestBody: s.body(sinceForm{}, map[string]any{"since": timeExample}),
		Responses: s.responses(http.StatusAccepted, "They are on their way.", replayedView{}, replayedView{3},
			invalidRequest, notFound, webhookDisabled, tooLarge, unsupportedMedia),
	}
}
