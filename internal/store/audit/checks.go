package audit

import (
	"strings"
)

// Check describes one check of the audit.
type Check struct {
	Name, Meaning string
	Guarantee     string // the guarantee in docs/guarantees.md that a violation breaks
}

// Checks lists all checks of the audit. A test compares docs/operations.md with it.
var Checks = []Check{
	{"promised-window", "More pushes of a recipient are promised within a window than a rule allows.", "I2"},
	{"actual-window", "More attempts may have reached a recipient within a window than a rule allows, counted from when the provider had each.", "I2"},
	{"quiet-hours", "A push is promised or was sent within quiet hours of its recipient.", "I2"},
	{"opted-out", "A push was accepted or sent for a recipient who had opted out of it.", "I2"},
	{"suppressed", "An attempt began to an address that had been suppressed for more than a minute.", "I12"},
	{"overlap", "Two attempts of one recipient were under way at once.", "I3"},
	{"overdue", "A push has been due or expired for more than five minutes and still waits. This also happens while its channel takes nothing or workers are too few. A push through a channel of its tenant counts when it has expired.", "I1"},
	{"not-live", "A waiting push is missing in the table live, which workers search, or differs there; or a push that has ended is still in it.", "I1"},
	{"lost", "The lease of an attempt expired more than five minutes ago, and the attempt was not ended.", "I1"},
	{"open-attempt", "An attempt has not ended and is not the current attempt of its push; or a push that is being sent has no attempt under way.", "I3"},
	{"attempts", "A push counts more or fewer attempts than are recorded, or their numbers have gaps.", "I3"},
	{"orphan", "An attempt belongs to no push, or differs from it in tenant, recipient or channel.", "I3"},
	{"outcome", "A push was sent without a delivered attempt, or failed without any attempt.", "I1"},
	{"delivered-again", "A push was tried again, still waits, or has another final status, although its delivery was known.", "I3"},
	{"possibly-delivered", "possibly_delivered of a push does not match the outcomes of its attempts.", "I4"},
	{"after-end", "An attempt began after the push had ended, or reached the provider after the push was canceled.", "I4"},
	{"early", "A push was sent, or is scheduled to be sent, before its send time.", "I2"},
	{"too-late", "A push was sent after its expiry.", "I1"},
	{"expired-early", "A push expired before its expiry.", "I1"},
	{"no-reason", "A push failed or expired, and its record gives no reason.", "I1"},
	{"times", "The times of a push or an attempt contradict each other, lie in the future, or are infinite.", "I1"},
	{"recipient-key", "A push is stored under a key that is not its recipient's, so that its bookings are not found.", "I2"},
	{"unknown-tenant", "A push belongs to a tenant that does not exist.", "I1"},
	{"idempotency", "Within 30 days, one Idempotency-Key made pushes from different requests or for different tenants, or one push twice; or the record of the key is missing.", "I6"},
}

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
