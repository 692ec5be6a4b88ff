package client

import (
	"context"
	"net/http"
	"time"
)

// Check says whether a push would find a place, and what is in its way. It books nothing.
func (c *Client) Check(ctx context.Context, q NewCheck) (Check, error) {
	return ask[Check](ctx, c, call{method: http.MethodPost, path: path("quota", "check"), body: q, repeat: true})
}

// QuotaOptions say for what a quota is asked. What is zero is the API's default: now, the first channel, no category.
type QuotaOptions struct {
	At                time.Time
	Channel, Category string
}

// Quota says how full each rule of a recipient is at a time.
func (c *Client) Quota(ctx context.Context, recipient string, o QuotaOptions) (RecipientQuota, error) {
	query := params{"at": o.At, "channel": o.Channel, "category": o.Category}
	return ask[RecipientQuota](ctx, c, call{method: http.MethodGet, path: path("recipients", recipient, "quota"), query: query.values(), repeat: true})
}

// SlotOptions say for what slots are asked. What is zero is the API's default.
type SlotOptions struct {
	From, Until       time.Time
	Channel, Category string
}

// Slots shows when nothing can be booked for a recipient, and what is booked. If NextFrom is not zero, the rest follows
// from there on.
func (c *Client) Slots(ctx context.Context, recipient string, o SlotOptions) (Slots, error) {
	query := params{"from": o.From, "until": o.Until, "channel": o.Channel, "category": o.Category}
	return ask[Slots](ctx, c, call{method: http.MethodGet, path: path("recipients", recipient, "slots"), query: query.values(), repeat: true})
}

// AvailabilityOptions say for what an availability is asked. What is zero is the API's default. Without is the id of a push that is
// taken not to be booked: one that is to be moved or canceled.
type AvailabilityOptions struct {
	From, Until       time.Time
	Channel, Category string
	Without           string
}

// Availability shows when a push could be booked for a recipient, and what is in the way at other times. It books nothing. If
// NextFrom is not zero, the rest follows from there on.
func (c *Client) Availability(ctx context.Context, recipient string, o AvailabilityOptions) (Availability, error) {
	query := params{"from": o.From, "until": o.Until, "channel": o.Channel, "category": o.Category, "without": o.Without}
	return ask[Availability](ctx, c, call{method: http.MethodGet, path: path("recipients", recipient, "availability"), query: query.values(), repeat: true})
}
