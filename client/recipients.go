package client

import (
	"context"
	"io"
	"iter"
	"net/http"
	"time"
)

// PutRecipient replaces all that is known of a recipient. Scheduled pushes that the recipient does not want are canceled.
func (c *Client) PutRecipient(ctx context.Context, id string, r NewRecipient) (RecipientStored, error) {
	return ask[RecipientStored](ctx, c, call{method: http.MethodPut, path: path("recipients", id), body: r, repeat: true})
}

// Recipient reads what is known of a recipient.
func (c *Client) Recipient(ctx context.Context, id string) (Recipient, error) {
	return ask[Recipient](ctx, c, call{method: http.MethodGet, path: path("recipients", id), repeat: true})
}

// Recipients lists the recipients of whom something is known; optedOut: only those with an opt-out.
func (c *Client) Recipients(ctx context.Context, optedOut bool) iter.Seq2[Recipient, error] {
	query := params{"opted_out": optedOut, "page_size": pageSize}
	return list(ctx, c, path("recipients"), query.values(), func(p RecipientsPage) ([]Recipient, string) { return p.Recipients, p.NextPageToken })
}

// EraseRecipient forgets a person. A repetition after a lost answer finds, and counts, nothing.
func (c *Client) EraseRecipient(ctx context.Context, id string) (Erased, error) {
	return ask[Erased](ctx, c, call{method: http.MethodDelete, path: path("recipients", id), repeat: true})
}

// Timeline shows what a recipient was and will be sent, the oldest first. What is zero is the API's default.
func (c *Client) Timeline(ctx context.Context, id string, from, until time.Time) (Timeline, error) {
	query := params{"from": from, "until": until}
	return ask[Timeline](ctx, c, call{method: http.MethodGet, path: path("recipients", id, "timeline"), query: query.values(), repeat: true})
}

// Format is how lines are written.
type Format string

// The formats of lines.
const (
	CSV    Format = "text/csv"             // with a header line
	NDJSON Format = "application/x-ndjson" // an object in each line
)

// ImportRecipients describes recipients by lines, of any number. It is made again only if the lines can be read again,
// as those of a file can.
func (c *Client) ImportRecipients(ctx context.Context, lines io.Reader, f Format) (Import, error) {
	return ask[Import](ctx, c, call{method: http.MethodPost, path: path("recipients", "import"), upload: lines, media: string(f), repeat: true})
}
