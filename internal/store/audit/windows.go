package audit

import (
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/quota"
)

// The windows sort the rows of a recipient by time. The key comes first, because numbers sort fastest; texts are compared byte
// by byte. The order is total, so that the findings do not depend on the size of the chunks.
const (
	byRecipient = `PARTITION BY recipient_key, tenant_id, recipient COLLATE "C"`
	byAttempt   = byRecipient + ` ORDER BY started_at, push_id, attempt, under_way`
)

// sameForAll returns the rules that the queries test: the rules of the file, if they are the same for every push.
// [termsAudit] checks all others.
func sameForAll(file booking.Terms) quota.Policy {
	if file = booking.OrNone(file); file.Plain() {
		return file.For(quota.Person{}, quota.Kind{})
	}
	return nil
}

// withoutOwn is the condition that the file's rules, which are arguments, apply to a row: its tenant never had its own
// policy and never described a recipient.
const withoutOwn = `tenant_id NOT IN (SELECT id FROM tenants WHERE policy_version > 0 OR described)`

// ruleArgs adds the arguments limit0, window0 and rule0 for the first rule, and so on.
func ruleArgs(args pgx.NamedArgs, policy quota.Policy) {
	for i, r := range policy {
		args[fmt.Sprint("limit", i)], args[fmt.Sprint("window", i)], args[fmt.Sprint("rule", i)] = r.Limit, r.Window, r.Name
	}
}

// lags returns the columns first0, first1, and so on. For each rule, the column is the time of the row that is as many
// rows earlier as the rule allows in a window.
func lags(policy quota.Policy, column string) string {
	lags := make([]string, len(policy))
	for i := range policy {
		lags[i] = fmt.Sprintf(`lag(%s, @limit%d::int) OVER w AS first%d`, column, i, i)
	}
	return strings.Join(lags, ", ")
}

// windowChecks returns a check for each rule: a row must not be closer than the window to the row of its lag.
func windowChecks(policy quota.Policy, name, what string) []auditCheck {
	checks := make([]auditCheck, len(policy))
	for i := range policy {
		checks[i] = auditCheck{name,
			fmt.Sprintf(`at < first%d + @window%d::interval`, i, i),
			fmt.Sprintf(`format('more than %%s %s within %%s, from %%s to %%s (rule %%s)', @limit%d::int, @window%d::interval, first%d, at, @rule%d::text)`, what, i, i, i, i),
		}
	}
	return checks
}

// promisedQuery sorts the pushes that hold places in a quota by their promised time, once for all rules.
func promisedQuery(policy quota.Policy) auditQuery {
	return auditQuery{
		who: `tenant_id, recipient, id`,
		at:  `at`,
		from: `(
			SELECT *, send_at AS at, ` + lags(policy, `send_at`) + `
			FROM own p WHERE freed = false AND status IN ('scheduled', 'sent') AND ` + withoutOwn + `
			WINDOW w AS (` + byRecipient + ` ORDER BY send_at, id)
		) p`,
		where:  `checked`,
		checks: windowChecks(policy, "promised-window", "sends promised"),
	}
}

// actualQuery sorts the attempts that may have reached the provider. Each must begin at least a window after the
// provider had, or may have had, the earlier one. The gate in internal/booking/claim.go enforces this.
func actualQuery(policy quota.Policy) auditQuery {
	return auditQuery{
		who: `tenant_id, recipient, push_id`,
		at:  `at`,
		from: `(
			SELECT *, started_at AS at, ` + lags(policy, `coalesce(handed_at, ended_at, started_at)`) + `
			FROM attempts s WHERE near AND outcome IS DISTINCT FROM 'refused' AND ` + withoutOwn + `
			WINDOW w AS (` + byAttempt + `)
		) s`,
		where:  `fresh`,
		checks: windowChecks(policy, "actual-window", "sends"),
	}
}

// overlapQuery sorts all attempts and finds one that began before an earlier one ended.
var overlapQuery = auditQuery{
	who: `tenant_id, recipient, push_id`,
	at:  `started_at`,
	from: `(
		SELECT *, max(coalesce(ended_at, 'infinity')) OVER (` + byAttempt + ` ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
		FROM attempts s WHERE near
	) s`,
	where: `fresh`,
	checks: []auditCheck{{"overlap", `started_at < before`,
		`format('attempt %s began at %s, before one of the same recipient ended at %s', attempt, started_at, before)`}},
}
