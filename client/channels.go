package client

import (
	"context"
	"net/http"
)

// Channels tells how the channels are.
func (c *Client) Channels(ctx context.Context) (ChannelReport, error) {
	return ask[ChannelReport](ctx, c, call{method: http.MethodGet, path: path("channels"), repeat: true})
}
