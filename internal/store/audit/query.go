package audit

import "strings"

// auditQuery reads rows of a chunk once, for several checks.
type auditQuery struct {
	who    string // the tenant, the recipient and the push of a row
	at     string // a time in the hour of whose audit a violation is found
	from   string // all that follows FROM, but for the conditions
	where  string // which rows are looked at
	checks []auditCheck
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
