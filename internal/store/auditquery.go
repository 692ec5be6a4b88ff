package store

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/quota"
)

// auditQuery reads rows once, for several checks.
type auditQuery struct {
	who    string // the tenant, the recipient and the push of a row
	at     string // a time in the hour of whose audit a violation is found
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
		SELECT f.name, ` + q.who + `, f.detail, ` + q.at + `
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
	rows, _ := tx.Query(ctx, q.sql(), args)
	var f Finding
	_, err := pgx.ForEachRow(rows, []any{&f.Check, &f.Tenant, &f.Recipient, &f.Push, &f.Detail, nil}, func() error {
		found(f)
		return nil
	})
	if err != nil {
		return fmt.Errorf("%s: %w", q.checks[0].name, err)
	}
	return nil
}

// auditCut says in SQL which rows the queries of an audit look at, and where they find those that they compare them with.
type auditCut struct {
	policy    quota.Policy
	forgotten string    // rows l of live that wait, and were due long ago
	underWay  string    // rows l of live of attempts under way
	busy      string    // a condition on a row l of live: the recipient has an attempt under way, o
	pushes    auditRows // pushes p
	known     string    // pushes that rows of live and attempts belong to
	shown     string    // the same, as callers see them
	tenants   string    // those of pushes
	itsLive   string    // joins a push p with its row l in live
	records   string    // attempts of pushes, as they are in sends
	sends     auditRows // attempts s
	sendAt    string    // a time in the hour of whose audit an attempt s is looked at
	around    auditRows // attempts s with those of their recipients so long before as can matter
	bookings  auditRows // pushes p that hold places, with those of their recipients so long before as can matter
	requests  string    // pushes with an Idempotency-Key
	keyed     string    // rows of idempotency of their keys
}

// auditRows are rows to read, and a condition for those of them that are looked at.
type auditRows struct{ from, where string }
