package records

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/rest"
)

const (
	auditsPath = "/v1/audits"

	// guaranteesPage lists the guarantees.
	guaranteesPage = "https://github.com/sendquota/sendquota/blob/main/docs/guarantees.md#what-is-promised"
)

// Audits is the source of the workers' audits, and lists their checks.
type Audits struct {
	Checks []AuditCheck
	Store  auditStore
}

// AuditCheck is one of the checks of an audit.
type AuditCheck struct{ Name, Meaning, Guarantee string }

// auditStore reads the audits' findings for a tenant.
type auditStore interface {
	Audits(ctx context.Context, tenant uuid.UUID, before time.Time, limit int) (booking.AuditPage, error)
}

// auditView is an audit as the API shows it.
type auditView struct {
	BeganAt    string             `json:"began_at" format:"date-time"`
	EndedAt    string             `json:"ended_at" format:"date-time"`
	Violations int                `json:"violations" doc:"The sum over all checks; 0: every guarantee was kept."`
	Found      []auditFindingView `json:"found" doc:"The violations that concern your pushes, by check; checks without violations are left out."`
	Complete   bool               `json:"complete" doc:"false: the audit found violations of too many tenants to store them all, so yours may be missing."`
}

type auditFindingView struct {
	Check      string      `json:"check"`
	Violations int         `json:"violations"`
	Pushes     []uuid.UUID `json:"pushes" doc:"The pushes of the first ten."`
}

type auditCheckView struct {
	Name      string `json:"name"`
	Meaning   string `json:"meaning" doc:"The meaning of a violation."`
	Guarantee string `json:"guarantee" doc:"The guarantee that a violation breaks, as link names it."`
	Link      string `json:"link" format:"uri"`
}

type auditsView struct {
	Audits        []auditView      `json:"audits" doc:"The latest first."`
	Checks        []auditCheckView `json:"checks" doc:"The checks of each audit."`
	NextPageToken string           `json:"next_page_token" doc:"The page_token of the next page; empty only at the end of the list."`
}

func auditViewOf(a booking.Audit) auditView {
	v := auditView{BeganAt: rest.Stamp(a.Began), EndedAt: rest.Stamp(a.Ended), Found: []auditFindingView{}, Complete: a.Complete}
	for _, check := range slices.Sorted(maps.Keys(a.Found)) {
		f := a.Found[check]
		v.Violations += f.Violations
		v.Found = append(v.Found, auditFindingView{check, f.Violations, append([]uuid.UUID{}, f.Pushes...)})
	}
	return v
}

func auditCheckViewOf(c AuditCheck) auditCheckView {
	return auditCheckView{c.Name, c.Meaning, c.Guarantee, guaranteesPage}
}

var auditsParams = rest.PagesOf(100, "20", rest.PageToken[rest.PageParams](rest.UsualToken))

// listAudits answers with a page of audits.
func (h *audits) listAudits(c *rest.Call) error {
	return rest.List(c, &auditsParams, func(q rest.PageParams, before time.Time) ([]booking.Audit, *time.Time, error) {
		page, err := h.Store.Audits(c.Request.Context(), c.Caller.Tenant, before, q.Size)
		return page.Audits, rest.OrNowhere(page.Next), err
	}, func(all []booking.Audit, next string) any {
		return auditsView{rest.ViewsOf(all, auditViewOf), rest.ViewsOf(h.Checks, auditCheckViewOf), next}
	})
}

func (h *audits) routes(s *rest.Spec) []rest.Operation {
	return []rest.Operation{{
		ID: "list-audits", Method: http.MethodGet, Path: auditsPath, Tag: TagRecords, Scope: push.ScopeRecordsRead, Serve: h.listAudits,
		Summary: "List audits",
		Description: "The workers verify the guarantees repeatedly, from the tables alone. Each audit covers everything that earlier audits have not closed, and all violations that were " +
			"found before. The list shows the violations that concern your pushes, for 90 days.",
		Query: &auditsParams, Status: http.StatusOK, Answer: "A page of audits.",
		Example: auditsView{Audits: rest.ViewsOf([]booking.Audit{
			{Began: rest.ExampleTime(15 * time.Minute), Ended: rest.ExampleTime(15*time.Minute + 40*time.Second), Complete: true},
			{Began: rest.ExampleTime(0), Ended: rest.ExampleTime(42 * time.Second), Complete: true, Found: map[string]*booking.AuditFinding{
				"overdue": {Violations: 1, Pushes: []uuid.UUID{uuid.MustParse(rest.ExampleID)}},
			}},
		}, auditViewOf), Checks: []auditCheckView{{
			"overdue", "A push is due, or has expired, for more than five minutes, and still waits; so does one while its channel takes nothing, or workers are too few.", "I1", guaranteesPage,
		}}},
	}}
}
