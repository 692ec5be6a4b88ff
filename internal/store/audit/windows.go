package audit

import (
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/quota"
)

// A recipient's rows follow each other in time. The key leads, since a number sorts fastest; texts are compared byte by byte.
// The order is total, so that what is close to each other is told of the same rows however few are read at once.
const (
	byRecipient = `PARTITION BY recipient_key, tenant_id, recipient COLLATE "C"`
	byAttempt   = byRecipient + ` ORDER BY started_at, push_id, attempt, under_way`
)

// sameForAll are the rules that the queries test: those of the file, if they are the same for every push. Others are for
// [termsAudit].
func sameForAll(file booking.Terms) quota.Policy {
	if file = booking.OrNone(file); file.Plain() {
		return file.For(quota.Person{}, quota.Kind{})
	}
	return nil
}

// withoutOwn says of a row that its tenant never had a policy of its own, nor described a recipient: the file's rules, which
// are arguments, hold for it.
const withoutOwn = `tenant_id NOT IN (SELECT id FROM tenants WHERE policy_version > 0 OR described)`

// ruleArgs adds the arguments limit0, window0 and rule0 for the first rule, and so on.
func ruleArgs(args pgx.NamedArgs, policy quota.Policy) {
	for i, r := range policy {
		args[fmt.Sprint("limit", i)], args[fmt.Sprint("window", i)], args[fmt.Sprint("rule", i)] = r.Limit, r.Window, r.Name
	}
}

// lags are the columns first0, first1, …: for each rule, the time of the row that is as many rows before as the rule
// allows in a window.
func lags(policy quota.Policy, column string) string {
	lags := make([]string, len(policy))
	for i := range policy {
		lags[i] = fmt.Sprintf(`lag(%s, @limit%d::int) OVER w AS first%d`, column, i, i)
	}
	return strings.Join(lags, ", ")
}

// windowChecks ask, for each rule, whether a row is too close to that one.
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

// promisedQuery sorts what holds a place in a quota by its promised time, once for all rules.
func promisedQuery(policy quota.Policy) auditQuery {
	return auditQuery{
		who: `tenant_id, recipient, id`,
		at:  `at`,
		from: `(
			SELECT *, send_at AS at, ` + lags(policy, `send_at`) + `
			FROM own p WHERE freed = false AND status IN ('scheduled', 'sent') AND ` + withoutOwn + `
			WINDOW w AS (` + byRecipient + ` ORDER BY send_at, id)
		) p`,
		where:  `looked`,
		checks: windowChecks(policy, "promised-window", "sends promised"),
	}
}

// actualQuery sorts the attempts that may have reached the provider. Each must begin a window after the provider had
// the one before, or can have had it: what the gate in internal/booking/claim.go makes sure of.
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

// overlapQuery sorts all attempts.
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
