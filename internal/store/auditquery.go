package store

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/booking"
)

// auditQuery reads rows once, for several checks.
type auditQuery struct {
	who    string // the tenant, the recipient and the push of a row
	from   string // all that follows FROM, but for the conditions
	where  string // which rows are looked at
	checks []auditCheck
	noWalk bool // do not walk along an index to save a sort: three million rows take 13 s so, and 4 s sorted
}

// auditCheck is one question to every row. Both expressions may use the named arguments of the audit.
type auditCheck struct {
	name   string // of one of [Checks]
	broken string // an expression that is true where the guarantee is broken
	detail string // an expression for what is wrong, without personal data
}

// sql asks for all findings. A row is first tested for all checks at once; the few that fail one are then asked which.
func (q auditQuery) sql() string {
	var some, each []string
	for _, c := range q.checks {
		some = append(some, "("+c.broken+")")
		each = append(each, "('"+c.name+"', ("+c.broken+"), "+c.detail+")")
	}
	return `
		SELECT f.name, ` + q.who + `, f.detail
		FROM ` + q.from + `
		CROSS JOIN LATERAL (VALUES
			` + strings.Join(each, ",\n\t\t\t") + `
		) AS f (name, broken, detail)
		WHERE ` + q.where + `
			AND (` + strings.Join(some, "\n\t\t\t\tOR ") + `) AND f.broken`
}

// names lists the query's checks, each once.
func (q auditQuery) names() []string {
	var names []string
	for _, c := range q.checks {
		if n := len(names); n == 0 || names[n-1] != c.name {
			names = append(names, c.name)
		}
	}
	return names
}

// run tells found of all findings.
func (q auditQuery) run(ctx context.Context, tx pgx.Tx, args pgx.NamedArgs, found func(Finding)) error {
	walk := "on"
	if q.noWalk {
		walk = "off"
	}
	if _, err := tx.Exec(ctx, `SET LOCAL enable_indexscan = `+walk); err != nil {
		return err
	}
	rows, _ := tx.Query(ctx, q.sql(), args)
	var f Finding
	_, err := pgx.ForEachRow(rows, []any{&f.Check, (*[16]byte)(&f.Tenant), &f.Recipient, (*[16]byte)(&f.Push), &f.Detail}, func() error {
		found(f)
		return nil
	})
	return err
}

// whole reports whether the audit leaves nothing out.
func (s AuditScope) whole() bool { return s.Since.IsZero() && s.Until.IsZero() }

// queries are all that the audit asks, in this order.
func (s AuditScope) queries() []auditQuery {
	all := []auditQuery{
		s.waitingQuery(), s.underWayQuery(), s.pushQuery(), s.attemptQuery(), s.recordQuery(), s.overlapQuery(), s.requestQuery(),
	}
	if len(s.Policy) > 0 {
		all = append(all, s.promisedQuery(), s.actualQuery())
	}
	return all
}

// args are the arguments that queries may name. Times count from the beginning of the transaction, which is about that
// of the snapshot.
//
// The tenants that have pushes lead to those of some time by the index pushes_tenant, if they are few enough for that
// to be the shorter way.
func (s AuditScope) args(ctx context.Context, tx pgx.Tx) (pgx.NamedArgs, error) {
	args := pgx.NamedArgs{"grace": auditGrace, "since": s.Since, "until": s.Until, "reach": s.Policy.Reach()}
	if s.Until.IsZero() {
		args["until"] = booking.EndOfTime
	}
	if !s.whole() {
		rows, _ := tx.Query(ctx, `
			WITH RECURSIVE t (id) AS (
				(SELECT tenant_id FROM pushes ORDER BY tenant_id LIMIT 1)
				UNION ALL SELECT (SELECT tenant_id FROM pushes WHERE tenant_id > t.id ORDER BY tenant_id LIMIT 1) FROM t WHERE t.id IS NOT NULL
			) SELECT id FROM t WHERE id IS NOT NULL`)
		tenants, err := pgx.CollectRows(rows, pgx.RowTo[[16]byte])
		if err != nil {
			return nil, err
		}
		args["tenants"] = tenants
	}
	s.ruleArgs(args)
	return args, nil
}

// promisedIn is the condition on the table pushes for what was to be sent in the scope, or so long before.
func (s AuditScope) promisedIn(table, before string) string {
	if s.whole() {
		return "true"
	}
	return table + `.tenant_id = ANY (@tenants::uuid[]) AND ` + table + `.send_at >= @since::timestamptz` + before + ` AND ` + table + `.send_at < @until::timestamptz`
}

// startedIn is the condition on the table sends for what was sent in the scope, or so long before.
func (s AuditScope) startedIn(table, before string) string {
	if s.Since.IsZero() {
		return "true"
	}
	return table + `.started_at >= @since::timestamptz` + before
}
