package audit

import (
	"context"
	"slices"
	"time"

	"github.com/sendquota/sendquota/internal/store/pg"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"github.com/sendquota/sendquota/internal/booking"
)

// auditEndedSQL records a finished pass with its findings of each tenant, and deletes old records. A second run of the
// transaction keeps the one record.
const auditEndedSQL = `ended AS (
		INSERT INTO audits (began_at, ended_at, complete) SELECT $5, ended, $6 FROM over
		ON CONFLICT (began_at) DO UPDATE SET ended_at = EXCLUDED.ended_at
	), findings AS (
		INSERT INTO audit_findings (tenant_id, began_at, check_name, violations, pushes)
		SELECT f."Tenant", $5, f."Check", f."Violations", coalesce(f."Pushes", '{}')
		FROM over, jsonb_to_recordset($7::jsonb) AS f ("Tenant" uuid, "Check" text, "Violations" int, "Pushes" uuid[])
		ON CONFLICT DO NOTHING
	), old AS (
		DELETE FROM audits WHERE began_at < $5 - $8::interval
	), old_findings AS (
		DELETE FROM audit_findings WHERE began_at < $5 - $8::interval
	)`

// tenantFinding is a row of audit_findings.
type tenantFinding struct {
	Tenant uuid.UUID
	Check  string
	booking.AuditFinding
}

// findings lists the findings of all tenants.
func (s *auditState) findings() []tenantFinding {
	all := []tenantFinding{}
	for tenant, found := range s.Tenants {
		for check, f := range found {
			all = append(all, tenantFinding{tenant, check, *f})
		}
	}
	return all
}

// Audits returns up to limit finished passes of the workers' audit with the findings of a tenant, the latest first. It
// returns passes that began before a time; zero: all.
func (s *Store) Audits(ctx context.Context, tenant uuid.UUID, before time.Time, limit int) (page booking.AuditPage, err error) {
	err = s.db.Read(ctx, tenant, func(ctx context.Context, c pg.Reader) error {
		page = booking.AuditPage{}
		rows, _ := c.Query(ctx, `
			SELECT a.began_at, a.ended_at, a.complete, f.check_name, f.violations, f.pushes
			FROM (SELECT * FROM audits WHERE began_at < coalesce($2::timestamptz, 'infinity') ORDER BY began_at DESC LIMIT $3) a
			LEFT JOIN audit_findings f ON f.tenant_id = $1 AND f.began_at = a.began_at
			ORDER BY a.began_at DESC`, tenant, zeronull.Timestamptz(before), limit+1)
		var (
			a          booking.Audit
			check      *string
			violations *int
			pushes     []uuid.UUID
		)
		_, err := pgx.ForEachRow(rows, []any{&a.Began, &a.Ended, &a.Complete, &check, &violations, &pushes}, func() error {
			if n := len(page.Audits); n == 0 || !page.Audits[n-1].Began.Equal(a.Began) {
				page.Audits = append(page.Audits, booking.Audit{Began: a.Began, Ended: a.Ended, Complete: a.Complete, Found: map[string]*booking.AuditFinding{}})
			}
			if check != nil {
				page.Audits[len(page.Audits)-1].Found[*check] = &booking.AuditFinding{Violations: *violations, Pushes: slices.Clone(pushes)}
			}
			return nil
		})
		if len(page.Audits) > limit {
			page.Audits = page.Audits[:limit]
			page.Next = page.Audits[limit-1].Began
		}
		return err
	})
	return page, err
}

// LastAudit returns the result of the latest finished pass of any worker; nil: there is none.
func (s *Store) LastAudit(ctx context.Context) (last *booking.AuditResult, err error) {
	err = s.db.Pool.QueryRow(ctx, `SELECT last FROM audit_pass`).Scan(&last)
	return last, pg.Classify(err)
}
