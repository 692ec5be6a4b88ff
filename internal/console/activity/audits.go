package activity

import (
	"net/url"
	"strings"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/console/frame"
)

// auditsView has the latest audits and the guarantees that they check.
type auditsView struct {
	client.AuditsPage
	Guarantees []checkedGuarantee
}

// checkedGuarantee is a guarantee with the checks of an audit that would find it broken.
type checkedGuarantee struct {
	guarantee
	Checks []client.AuditCheck
}

// Plain is the promise without the marks of Markdown.
func (g checkedGuarantee) Plain() string { return strings.ReplaceAll(g.Promise, "`", "") }

// showAudits shows the last audits, and which guarantee each of their checks is about.
func showAudits(p *frame.Page) error {
	view := &auditsView{}
	query := url.Values{"page_size": {"20"}}
	if token := p.Query("page_token"); token != "" {
		query.Set("page_token", token)
	}
	if err := p.API.Get(p.Context(), "/v1/audits", query, &view.AuditsPage); err != nil {
		return err
	}
	for _, g := range guarantees {
		proven := checkedGuarantee{guarantee: g}
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
func (v *auditsView) Guarantee(check string) string {
	for _, c := range v.Checks {
		if c.Name == check {
			return c.Guarantee
		}
	}
	return ""
}

// guarantee is a promise of docs/guarantees.md, in the same words: a test compares them.
type guarantee struct{ Name, Promise string }

var guarantees = []guarantee{
	{"I1", "An accepted push ends `sent`, `failed`, `expired` or `canceled`, and its record has the reason. None is lost."},
	{"I2", "In no window does a recipient have more sends than the limit, neither in promised nor in actual times."},
	{"I3", "One attempt in flight for a recipient; one final record; every attempt has the same idempotency key."},
	{"I4", "After a cancel is confirmed, nothing is delivered. If an earlier attempt may have been delivered, the answer has `possibly_delivered: true`."},
	{"I5", "A refused request leaves no trace in any quota."},
	{"I6", "Within 30 days the same Idempotency-Key with the same request gets the same push, or a 410 if the push is no longer kept; with another request, a clear error. None is booked twice."},
	{"I7", "After the answer to a change of a policy, every process decides new submits by the new policy."},
	{"I8", "Each occurrence of a schedule has one record, and submits one push, not before its time. Once a deletion is answered, nothing is submitted."},
	{"I9", "Each recipient of a campaign is decided and recorded once, with the reason. The numbers add up to the audience at every moment. From two seconds after a pause or cancel is answered, no attempt begins; a cancel releases every place. A start does what its simulation showed, if nothing came between."},
	{"I10", "From two seconds after a pause is answered, no attempt begins in its scope. When it ends, what waited is sent once each, or has expired."},
	{"I11", "A push for a tenant's own channel goes through no other channel, also while that is changed, disabled or cannot be opened. A deletion of the channel cancels what is booked for it, or is refused."},
	{"I12", "After the answer to a suppression, no push to the address is scheduled, and no attempt to it begins."},
}
