package client

import (
	"context"
	"io"
	"iter"
	"time"
)

// LogFilter chooses entries of the audit log. What is zero chooses all.
type LogFilter struct {
	Actor       string    // the id of a user or an API key
	ActorType   string    // user, key or system
	Action      string    // such as key.create
	Target      string    // an id
	From, Until time.Time // when it was done, From included and Until not
}

func (f LogFilter) params() params {
	return params{"actor": f.Actor, "actor_type": f.ActorType, "action": f.Action, "target": f.Target, "from": f.From, "until": f.Until}
}

// AuditLog lists who did what, the latest first.
func (c *Client) AuditLog(ctx context.Context, f LogFilter) iter.Seq2[LogEntry, error] {
	query := f.params().values()
	query.Set("page_size", "500")
	return list(ctx, c, path("audit-log"), query, func(p AuditLogPage) ([]LogEntry, string) { return p.Entries, p.NextPageToken })
}

// ExportAuditLog streams entries of any number, the latest first. The caller closes the stream. It breaks off with an error if not all
// could be sent.
func (c *Client) ExportAuditLog(ctx context.Context, f LogFilter, as Format) (io.ReadCloser, error) {
	return c.stream(ctx, path("audit-log", "export"), f.params().values(), as)
}
