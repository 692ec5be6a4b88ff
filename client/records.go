package client

import (
	"context"
	"io"
	"iter"
	"net/http"
	"time"
)

// SendFilter chooses attempts. What is zero chooses all.
type SendFilter struct {
	Recipient, Channel, Category, Campaign string
	Outcome                                string    // delivered, refused or unknown
	From, Until                            time.Time // when the attempts began, From included and Until not
}

func (f SendFilter) params() params {
	return params{
		"recipient": f.Recipient, "channel": f.Channel, "category": f.Category, "campaign": f.Campaign, "outcome": f.Outcome, "from": f.From, "until": f.Until,
	}
}

// Sends lists attempts by when they began.
func (c *Client) Sends(ctx context.Context, f SendFilter) iter.Seq2[SendRecord, error] {
	query := f.params().values()
	query.Set("page_size", "500")
	return list(ctx, c, path("sends"), query, func(p SendsPage) ([]SendRecord, string) { return p.Sends, p.NextPageToken })
}

// ExportSends streams attempts of any number, by when they began. The caller closes the stream. It breaks off with an error if not all
// could be sent.
func (c *Client) ExportSends(ctx context.Context, f SendFilter, as Format) (io.ReadCloser, error) {
	return c.stream(ctx, path("sends", "export"), f.params().values(), as)
}

// RefusalFilter chooses refusals. What is zero chooses all.
type RefusalFilter struct {
	Recipient, Campaign, Rule string
	From, Until               time.Time // when they were refused, From included and Until not
}

// Refusals lists what was refused: of campaigns all, of single submits the last ones of each recipient.
func (c *Client) Refusals(ctx context.Context, f RefusalFilter) iter.Seq2[Refusal, error] {
	query := params{"recipient": f.Recipient, "campaign": f.Campaign, "rule": f.Rule, "from": f.From, "until": f.Until, "page_size": pageSize}
	return list(ctx, c, path("refusals"), query.values(), func(p RefusalsPage) ([]Refusal, string) { return p.Refusals, p.NextPageToken })
}

// StatsOptions say what is counted. What is zero is the API's default.
type StatsOptions struct {
	From, Until time.Time // whole hours
	GroupBy     string    // hour, day, channel, category, campaign or rule
}

// Stats counts pushes and what became of them.
func (c *Client) Stats(ctx context.Context, o StatsOptions) (Stats, error) {
	query := params{"from": o.From, "until": o.Until, "group_by": o.GroupBy}
	return ask[Stats](ctx, c, call{method: http.MethodGet, path: path("stats"), query: query.values(), repeat: true})
}

// AheadOptions say what is counted. What is zero is the API's default, or chooses all.
type AheadOptions struct {
	From, Until                 time.Time
	GroupBy                     string // hour or day
	SplitBy                     string // channel, category or campaign: with parts of each; empty: without
	Channel, Category, Campaign string
}

// Ahead counts what is scheduled by hours or days to come, for a calendar.
func (c *Client) Ahead(ctx context.Context, o AheadOptions) (Ahead, error) {
	query := params{"from": o.From, "until": o.Until, "group_by": o.GroupBy, "split_by": o.SplitBy, "channel": o.Channel, "category": o.Category, "campaign": o.Campaign}
	return ask[Ahead](ctx, c, call{method: http.MethodGet, path: path("stats", "ahead"), query: query.values(), repeat: true})
}

// Status tells how things stand now: the servers, what waits, and the attempts of the last hour.
func (c *Client) Status(ctx context.Context) (Status, error) {
	return ask[Status](ctx, c, call{method: http.MethodGet, path: path("status"), repeat: true})
}

// FailureFilter chooses pushes that have failed or expired. What is zero is the API's default, or chooses all.
type FailureFilter struct {
	Channel, Campaign string
	From, Until       time.Time // of the send times, From included and Until not
}

// Failures groups what has failed or expired by channel and reason.
func (c *Client) Failures(ctx context.Context, f FailureFilter) (Failures, error) {
	query := params{"channel": f.Channel, "campaign": f.Campaign, "from": f.From, "until": f.Until}
	return ask[Failures](ctx, c, call{method: http.MethodGet, path: path("failures"), query: query.values(), repeat: true})
}
