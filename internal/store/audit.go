package store

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/quota"
)

// Finding is a broken guarantee.
type Finding struct {
	Check     string    `json:"check"` // promised-window, actual-window, overlap, overdue, lost
	Tenant    uuid.UUID `json:"tenant"`
	Recipient string    `json:"recipient"`
	Push      uuid.UUID `json:"push"`
	Detail    string    `json:"detail"`
}

// auditGrace is how long workers may take before something due counts as
// forgotten.
const auditGrace = 5 * time.Minute

// Audit looks for broken guarantees in the tables alone, among what was to be
// sent or was sent since a time.
func (s *Store) Audit(ctx context.Context, policy quota.Policy, since time.Time) ([]Finding, error) {
	var all []Finding
	err := pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		// Unlike everything else, an audit reads whole tables.
		_, err := tx.Exec(ctx, `SET LOCAL enable_seqscan = on; SET LOCAL enable_hashjoin = on; SET LOCAL enable_mergejoin = on`)
		if err != nil {
			return err
		}
		for _, c := range auditChecks(policy) {
			rows, _ := tx.Query(ctx, c.sql, append([]any{since}, c.args...)...)
			found, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Finding, error) {
				f := Finding{Check: c.name}
				err := row.Scan((*[16]byte)(&f.Tenant), &f.Recipient, (*[16]byte)(&f.Push), &f.Detail)
				return f, err
			})
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			all = append(all, found...)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("audit: %w", classify(err))
	}
	return all, nil
}

type auditCheck struct {
	name, sql string
	args      []any
}

func auditChecks(policy quota.Policy) []auditCheck {
	checks := []auditCheck{
		{"overlap", `
			SELECT tenant_id, recipient, push_id, format('attempt %s began at %s, before the recipient''s previous one ended at %s', attempt, started_at, before)
			FROM (SELECT *, max(coalesce(ended_at, 'infinity')) OVER (PARTITION BY tenant_id, recipient ORDER BY started_at, push_id, attempt
				ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before FROM sends WHERE started_at >= $1) s
			WHERE started_at < before`, nil},
		{"overdue", `
			SELECT tenant_id, recipient, id, format('due since %s, expires at %s, and still scheduled', next_at, expires_at)
			FROM pushes WHERE send_at >= $1 AND status = 'scheduled' AND next_at < clock_timestamp() - $2::interval`, []any{auditGrace}},
		{"lost", `
			SELECT tenant_id, recipient, id, format('its attempt''s lease ended at %s, and nobody reaped it', lease_until)
			FROM pushes WHERE send_at >= $1 AND status = 'sending' AND lease_until < clock_timestamp() - $2::interval`, []any{auditGrace}},
	}
	for _, r := range policy {
		checks = append(checks,
			auditCheck{"promised-window", `
			SELECT tenant_id, recipient, id, format('more than %s sends promised within %s, from %s to %s (rule %s)', $2::int, $3::interval, first, send_at, $4::text)
			FROM (SELECT *, lag(send_at, $2::int) OVER (PARTITION BY tenant_id, recipient ORDER BY send_at, id) AS first
				FROM pushes WHERE send_at >= $1::timestamptz - $3::interval AND status IN ('scheduled', 'sending', 'sent')) p
			WHERE send_at >= $1 AND send_at - first < $3::interval`, []any{r.Limit, r.Window, r.Name}},
			auditCheck{"actual-window", `
			SELECT tenant_id, recipient, push_id, format('more than %s sends within %s, from %s to %s (rule %s)', $2::int, $3::interval, first, started_at, $4::text)
			FROM (SELECT *, lag(started_at, $2::int) OVER (PARTITION BY tenant_id, recipient ORDER BY started_at, push_id, attempt) AS first
				FROM sends WHERE started_at >= $1::timestamptz - $3::interval AND outcome IS DISTINCT FROM 'refused') s
			WHERE started_at >= $1 AND started_at - first < $3::interval`, []any{r.Limit, r.Window, r.Name}})
	}
	return checks
}
