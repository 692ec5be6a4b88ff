package client

import (
	"context"
	"iter"
	"net/http"
	"time"
)

// CreateWebhook has events posted to an address from now on. Its Secret, which verifies them, is shown only in this answer. It is
// not made again after a lost answer: the webhook may be there, and is in the list.
func (c *Client) CreateWebhook(ctx context.Context, w NewWebhook) (Webhook, error) {
	return ask[Webhook](ctx, c, call{method: http.MethodPost, path: path("webhooks"), body: w})
}

// Webhook reads a webhook, and how it fares.
func (c *Client) Webhook(ctx context.Context, id string) (Webhook, error) {
	return ask[Webhook](ctx, c, call{method: http.MethodGet, path: path("webhooks", id), repeat: true})
}

// Webhooks are all webhooks, the oldest first.
func (c *Client) Webhooks(ctx context.Context) ([]Webhook, error) {
	answer, err := ask[Webhooks](ctx, c, call{method: http.MethodGet, path: path("webhooks"), repeat: true})
	return answer.Webhooks, err
}

// DeleteWebhook removes a webhook with its deliveries. A repetition after a lost answer fails with status 404.
func (c *Client) DeleteWebhook(ctx context.Context, id string) error {
	return c.tell(ctx, call{method: http.MethodDelete, path: path("webhooks", id), repeat: true})
}

// TestWebhook sends an event of the type webhook.test. Deliveries shows what becomes of it.
func (c *Client) TestWebhook(ctx context.Context, id string) (Delivery, error) {
	return ask[Delivery](ctx, c, call{method: http.MethodPost, path: path("webhooks", id, "test")})
}

// RotateWebhookSecret gives a webhook a new Secret, which is shown only in this answer; the old one signs for a day more.
func (c *Client) RotateWebhookSecret(ctx context.Context, id string) (Webhook, error) {
	return ask[Webhook](ctx, c, call{method: http.MethodPost, path: path("webhooks", id, "rotate-secret")})
}

// EnableWebhook has a webhook that was disabled get events again, and forgets its failures.
func (c *Client) EnableWebhook(ctx context.Context, id string) (Webhook, error) {
	return ask[Webhook](ctx, c, call{method: http.MethodPost, path: path("webhooks", id, "enable"), repeat: true})
}

// DeliveryFilter chooses deliveries. What is zero chooses all.
type DeliveryFilter struct {
	Status DeliveryStatus
	Event  string // such as push.sent
	Push   string // that the event is about
}

// Deliveries lists what was sent to a webhook, and what waits to be, the latest first.
func (c *Client) Deliveries(ctx context.Context, webhook string, f DeliveryFilter) iter.Seq2[Delivery, error] {
	query := params{"status": string(f.Status), "event": f.Event, "push": f.Push, "page_size": pageSize}
	return list(ctx, c, path("webhooks", webhook, "deliveries"), query.values(), func(p Deliveries) ([]Delivery, string) { return p.Deliveries, p.NextPageToken })
}

// ReplayDelivery sends an event again, with the same id and the same body.
func (c *Client) ReplayDelivery(ctx context.Context, webhook, id string) (Delivery, error) {
	return ask[Delivery](ctx, c, call{method: http.MethodPost, path: path("webhooks", webhook, "deliveries", id, "replay")})
}

// ReplayFailed sends the events since a time that were given up again, and says how many: at most ten thousand; call it until it is 0.
func (c *Client) ReplayFailed(ctx context.Context, webhook string, since time.Time) (int64, error) {
	answer, err := ask[Replayed](ctx, c, call{method: http.MethodPost, path: path("webhooks", webhook, "replay"), body: SinceForm{since}})
	return answer.Replayed, err
}
