package audit

import "strings"

// auditQuery reads rows of a chunk once, for several checks.
type auditQuery struct {
	who    string // the tenant, the recipient and the push of a row
	at     string // the time that determines the hour of a violation
	from   string // the FROM clause
	where  string // the condition of rows to check
	checks []auditCheck
}

// auditCheck is one check of every row. Both expressions may use the named arguments of the audit.
type auditCheck struct {
	name   string // the name of one of [Checks]
	broken string // an expression that is true if the row violates the guarantee
	detail string // an expression that describes the violation, without personal data
}

// sql returns the statement that selects all findings. It tests a row for all checks at once, and separates the checks
// only for the few rows that fail.
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
