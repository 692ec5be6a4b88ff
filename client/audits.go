package client

import (
	"context"
	"iter"
	"net/http"
)

// Audits lists the workers' audits, the latest first, with what they found of the tenant.
func (c *Client) Audits(ctx context.Context) iter.Seq2[Audit, error] {
	return list(ctx, c, path("audits"), params{"page_size": 100}.values(), func(p AuditsPage) ([]Audit, string) { return p.Audits, p.NextPageToken })
}

// AuditChecks lists the checks that each audit makes.
func (c *Client) AuditChecks(ctx context.Context) ([]AuditCheck, error) {
	page, err := ask[AuditsPage](ctx, c, call{method: http.MethodGet, path: path("audits"), query: params{"page_size": 1}.values(), repeat: true})
	return page.Checks, err
}
