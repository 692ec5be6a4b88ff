package store

import (
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// A recipient's rows follow each other in time. The key leads, since a number sorts fastest; texts are compared byte by
// byte.
const byRecipient = `PARTITION BY recipient_key, tenant_id, recipient COLLATE "C"`

// longAttempt bounds how long before a window an attempt can have begun that the provider had within it: leases are
// shorter.
const longAttempt = ` - interval '1 hour'`

// ruleArgs adds the arguments limit0, window0 and rule0 for the first rule, and so on.
func (s AuditScope) ruleArgs(args pgx.NamedArgs) {
	for i, r := range s.Policy {
		args[fmt.Sprint("limit", i)], args[fmt.Sprint("window", i)], args[fmt.Sprint("rule", i)] = r.Limit, r.Window, r.Name
	}
}

// lags are the columns first0, first1, …: for each rule, the time of the row that is as many rows before as the rule
// allows in a window.
func (s AuditScope) lags(column string) string {
	lags := make([]string, len(s.Policy))
	for i := range s.Policy {
		lags[i] = fmt.Sprintf(`lag(%s, @limit%d::int) OVER w AS first%d`, column, i, i)
	}
	return strings.Join(lags, ", ")
}

// windowChecks ask, for each rule, whether a row is too close to that one.
func (s AuditScope) windowChecks(name, what string) []auditCheck {
	checks := make([]auditCheck, len(s.Policy))
	for i := range s.Policy {
		checks[i] = auditCheck{name,
			fmt.Sprintf(`at < first%d + @window%d::interval`, i, i),
			fmt.Sprintf(`format('more than %%s %s within %%s, from %%s to %%s (rule %%s)', @limit%d::int, @window%d::interval, first%d, at, @rule%d::text)`, what, i, i, i, i),
		}
	}
	return checks
}

// promisedQuery sorts what holds a place in a quota by its promised time, once for all rules.
func (s AuditScope) promisedQuery() auditQuery {
	return auditQuery{
		who: `tenant_id, recipient, id`,
		from: `(
			SELECT tenant_id, recipient, id, send_at AS at, ` + s.lags(`send_at`) + `
			FROM pushes WHERE freed = false AND status IN ('scheduled', 'sending', 'sent') AND ` + s.promisedIn("pushes", ` - @reach::interval`) + `
			WINDOW w AS (` + byRecipient + ` ORDER BY send_at)
		) p`,
		where:  `at >= @since::timestamptz`,
		noWalk: true,
		checks: s.windowChecks("promised-window", "sends promised"),
	}
}

// actualQuery sorts the attempts that may have reached the provider. Each must begin a window after the provider had
// the one before, or can have had it: what the gate in internal/booking/claim.go makes sure of.
func (s AuditScope) actualQuery() auditQuery {
	return auditQuery{
		who: `tenant_id, recipient, push_id`,
		from: `(
			SELECT tenant_id, recipient, push_id, started_at AS at, ` + s.lags(`coalesce(handed_at, ended_at, started_at)`) + `
			FROM ` + allSends + ` s WHERE outcome IS DISTINCT FROM 'refused' AND ` + s.startedIn("s", ` - @reach::interval`+longAttempt) + `
			WINDOW w AS (` + byRecipient + ` ORDER BY started_at)
		) s`,
		where:  `at >= @since::timestamptz`,
		noWalk: true,
		checks: s.windowChecks("actual-window", "sends"),
	}
}

// overlapQuery sorts all attempts.
func (s AuditScope) overlapQuery() auditQuery {
	return auditQuery{
		who: `tenant_id, recipient, push_id`,
		from: `(
			SELECT tenant_id, recipient, push_id, attempt, started_at,
				max(coalesce(ended_at, 'infinity')) OVER (` + byRecipient + ` ORDER BY started_at ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
			FROM ` + allSends + ` s WHERE ` + s.startedIn("s", longAttempt) + `
		) s`,
		where:  `started_at >= @since::timestamptz`,
		noWalk: true,
		checks: []auditCheck{{"overlap", `started_at < before`,
			`format('attempt %s began at %s, before one of the same recipient ended at %s', attempt, started_at, before)`}},
	}
}
