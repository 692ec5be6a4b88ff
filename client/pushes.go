package client

import (
	"context"
	"iter"
	"net/http"
	"time"
)

// Submit books a place in the recipient's quota at the send time, and has the push sent then. With the same key and the
// same push, a second call returns the push of the first; an empty key is a new one. A refusal is a *QuotaExceeded, a
// *QuietHours, an *OptedOut, a *CapExceeded or an *Invalid.
func (c *Client) Submit(ctx context.Context, key string, p NewPush) (Push, error) {
	return ask[Push](ctx, c, call{method: http.MethodPost, path: path("pushes"), body: p}.keyed(key))
}

// Validate answers as Submit would now, and books nothing.
func (c *Client) Validate(ctx context.Context, p NewPush) (Push, error) {
	return ask[Push](ctx, c, call{method: http.MethodPost, path: path("pushes"), query: params{"validate_only": true}.values(), body: p, repeat: true})
}

// SubmitBatch submits up to a thousand pushes, in their order. Each has a result, whose Err says why it was not accepted.
// An atomic batch is booked as a whole, or refused as a *BatchRefused. The key is as for Submit.
func (c *Client) SubmitBatch(ctx context.Context, key string, b NewBatch) (Batch, error) {
	return ask[Batch](ctx, c, call{method: http.MethodPost, path: path("pushes", "batch"), body: b}.keyed(key))
}

// Push reads a push with its attempts.
func (c *Client) Push(ctx context.Context, id string) (Push, error) {
	return ask[Push](ctx, c, call{method: http.MethodGet, path: path("pushes", id), repeat: true})
}

// PushFilter chooses pushes. What is zero chooses all.
type PushFilter struct {
	Recipient, Channel, Category string
	Status                       PushStatus
	From, Until                  time.Time // of the send times, From included and Until not
}

// Pushes lists pushes by their send times, without their attempts.
func (c *Client) Pushes(ctx context.Context, f PushFilter) iter.Seq2[Push, error] {
	query := params{
		"recipient": f.Recipient, "channel": f.Channel, "category": f.Category, "status": string(f.Status),
		"from": f.From, "until": f.Until, "page_size": pageSize,
	}
	return list(ctx, c, path("pushes"), query.values(), func(p PushesPage) ([]Push, string) { return p.Pushes, p.NextPageToken })
}

// Cancel cancels a push that is scheduled; once more does nothing more. One that is not scheduled any more is a *PushState.
func (c *Client) Cancel(ctx context.Context, id string) (Push, error) {
	return ask[Push](ctx, c, call{method: http.MethodPost, path: path("pushes", id, "cancel"), repeat: true})
}

// Reschedule moves a push to another send time. If it is refused there, as by Submit, it keeps its place; one that is not
// scheduled any more is a *PushState.
func (c *Client) Reschedule(ctx context.Context, id string, to NewTime) (Push, error) {
	return ask[Push](ctx, c, call{method: http.MethodPatch, path: path("pushes", id), body: to, repeat: true})
}

// ValidateReschedule answers as Reschedule would now, and moves nothing.
func (c *Client) ValidateReschedule(ctx context.Context, id string, to NewTime) (Push, error) {
	return ask[Push](ctx, c, call{method: http.MethodPatch, path: path("pushes", id), query: params{"validate_only": true}.values(), body: to, repeat: true})
}

// Retry books a push that has failed or expired again, as a new push; what is not said of it is as it was. If it was retried before,
// and that retry was sent or may still be, that one is returned. A push that has neither failed nor expired is a *PushState; other
// refusals are those of Submit. The key is as for Submit.
func (c *Client) Retry(ctx context.Context, key, id string, r NewRetry) (Push, error) {
	return ask[Push](ctx, c, call{method: http.MethodPost, path: path("pushes", id, "retry"), body: r}.keyed(key))
}

// ValidateRetry answers as Retry would now, and books nothing.
func (c *Client) ValidateRetry(ctx context.Context, id string, r NewRetry) (Push, error) {
	return ask[Push](ctx, c, call{method: http.MethodPost, path: path("pushes", id, "retry"), query: params{"validate_only": true}.values(), body: r, repeat: true})
}
