package activity

import (
	"net/url"
	"strings"

	"github.com/sendquota/sendquota/internal/console/frame"

	"github.com/sendquota/sendquota/client"
)

// proofView has the latest audits and the guarantees that they check.
type proofView struct {
	client.AuditsPage
	Guarantees []provenGuarantee
}

// provenGuarantee is a guarantee with the checks of an audit that would find it broken.
type provenGuarantee struct {
	guarantee
	Checks []client.AuditCheck
}

// Plain is the promise without the marks of Markdown.
func (g provenGuarantee) Plain() string { return strings.ReplaceAll(g.Promise, "`", "") }

// showProof shows the last audits, and which guarantee each of their checks is about.
func showProof(p *frame.Page) error {
	view := &proofView{}
	query := url.Values{"page_size": {"20"}}
	if token := p.Query("page_token"); token != "" {
		query.Set("page_token", token)
	}
	if err := p.API.Get(p.Context(), "/v1/audits", query, &view.AuditsPage); err != nil {
		return err
	}
	for _, g := range guarantees {
		proven := provenGuarantee{guarantee: g}
		for _, check := range view.Checks {
			if check.Guarantee == g.Name {
				proven.Checks = append(proven.Checks, check)
			}
		}
		view.Guarantees = append(view.Guarantees, proven)
	}
	return p.Show("proof", "Proof", view)
}

// Guarantee is the guarantee that a check of the last audits is about.
func (v *proofView) Guarantee(check string) string {
	for _, c := range v.Checks {
		if c.Name == check {
			return c.Guarantee
		}
	}
	return ""
}
