package client

import (
	"context"
	"iter"
	"net/http"
	"time"
)

// CreateKey makes an API key, whose Secret is in this answer only. It is not made again after a lost answer.
func (c *Client) CreateKey(ctx context.Context, k NewKey) (Key, error) {
	return ask[Key](ctx, c, call{method: http.MethodPost, path: path("keys"), body: k})
}

// Key reads what is known of an API key.
func (c *Client) Key(ctx context.Context, id string) (Key, error) {
	return ask[Key](ctx, c, call{method: http.MethodGet, path: path("keys", id), repeat: true})
}

// Keys lists the API keys, the oldest first.
func (c *Client) Keys(ctx context.Context) iter.Seq2[Key, error] {
	return list(ctx, c, path("keys"), params{"page_size": pageSize}.values(), func(p KeysPage) ([]Key, string) { return p.Keys, p.NextPageToken })
}

// RotateKey makes a key that replaces another one, which lives on for the overlap. The Secret of the new one is in this
// answer only; it is not made again after a lost one.
func (c *Client) RotateKey(ctx context.Context, id string, overlap time.Duration) (Key, error) {
	return ask[Key](ctx, c, call{method: http.MethodPost, path: path("keys", id, "rotate"), body: map[string]any{"overlap": overlap.String()}})
}

// RevokeKey has an API key refused within a second; but not the key of the client itself.
func (c *Client) RevokeKey(ctx context.Context, id string) error {
	return c.tell(ctx, call{method: http.MethodDelete, path: path("keys", id), repeat: true})
}
