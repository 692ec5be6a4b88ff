package client

import (
	"context"
	"net/http"
	"time"
)

// Caps tells what the tenant may have at a time, and how much of it is used. Recipients are counted on the day of UTC on which a time
// lies; the zero time is today.
func (c *Client) Caps(ctx context.Context, day time.Time) (Caps, error) {
	query := params{}
	if !day.IsZero() {
		query["day"] = day.UTC().Format(time.DateOnly)
	}
	return ask[Caps](ctx, c, call{method: http.MethodGet, path: path("caps"), query: query.values(), repeat: true})
}
