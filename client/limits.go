package client

import (
	"context"
	"net/http"
)

// TakeLimits charges all of the speed limits, or none; a limit is there once it is named. What is refused is an answer with
// Allowed false, and not an error. It is made again only as a dry run: after an error, the cost may have been charged.
func (c *Client) TakeLimits(ctx context.Context, t NewTake) (Taken, error) {
	return ask[Taken](ctx, c, call{method: http.MethodPost, path: path("limits", "take"), body: t, repeat: t.DryRun})
}

// RefundLimits gives the cost of a take that was allowed back to its limits: once, and soon. It is made again only as a dry
// run: after an error it may have been made, and a second one would give back twice.
func (c *Client) RefundLimits(ctx context.Context, t NewTake) (Taken, error) {
	return ask[Taken](ctx, c, call{method: http.MethodPost, path: path("limits", "refund"), body: t, repeat: t.DryRun})
}

// ResetLimits forgets all that was used of the limits.
func (c *Client) ResetLimits(ctx context.Context, t NewTake) (Taken, error) {
	return ask[Taken](ctx, c, call{method: http.MethodPost, path: path("limits", "reset"), body: t, repeat: true})
}
