package client

import (
	"context"
	"iter"
	"net/http"
)

// CreateBulkChange cancels or moves all scheduled pushes that fit a filter. With the same key and the same change, a second call returns
// the bulk change of the first; an empty key is a new one.
func (c *Client) CreateBulkChange(ctx context.Context, key string, b NewBulkChange) (BulkChange, error) {
	return ask[BulkChange](ctx, c, call{method: http.MethodPost, path: path("bulk-changes"), body: b}.keyed(key))
}

// EstimateBulkChange says what a bulk change would do, and changes nothing.
func (c *Client) EstimateBulkChange(ctx context.Context, b NewBulkChange) (BulkEstimate, error) {
	return ask[BulkEstimate](ctx, c, call{method: http.MethodPost, path: path("bulk-changes"), query: params{"validate_only": true}.values(), body: b, repeat: true})
}

// BulkChange reads a bulk change.
func (c *Client) BulkChange(ctx context.Context, id string) (BulkChange, error) {
	return ask[BulkChange](ctx, c, call{method: http.MethodGet, path: path("bulk-changes", id), repeat: true})
}

// BulkChanges lists the bulk changes, the latest first.
func (c *Client) BulkChanges(ctx context.Context) iter.Seq2[BulkChange, error] {
	return list(ctx, c, path("bulk-changes"), params{"page_size": pageSize}.values(), func(p BulkChangesPage) ([]BulkChange, string) { return p.BulkChanges, p.NextPageToken })
}

// BulkRefused lists the pushes that a bulk change could not change, by the send times that they had.
func (c *Client) BulkRefused(ctx context.Context, id string) iter.Seq2[BulkRefused, error] {
	return list(ctx, c, path("bulk-changes", id, "refused"), params{"page_size": pageSize}.values(), func(p BulkRefusedPage) ([]BulkRefused, string) { return p.Refused, p.NextPageToken })
}

// CancelBulkChange stops a bulk change. What it has changed stays changed.
func (c *Client) CancelBulkChange(ctx context.Context, id string) (BulkChange, error) {
	return ask[BulkChange](ctx, c, call{method: http.MethodPost, path: path("bulk-changes", id, "cancel"), repeat: true})
}
