package pushes

import (
	"strings"

	"github.com/sendquota/sendquota/internal/push"
)

// Tells completes a statement that changes pushes, so that it also writes webhook events and counts pushes that end. In
// the statement, the common table expression source returns the changed pushes p, with {whole} after its columns; {told}
// follows the last common table expression. event is an expression over the columns of source; null writes no event.
func Tells(sql, source, event string) string {
	if event == scheduled || event == Deferred { // nothing ends
		return TellsCounted(sql, source, event, "", "")
	}
	return TellsCounted(sql, source, event, endedColumns, CountEnded(source, `of_end`))
}

// TellsCounted does what [Tells] does, with the caller's columns to count and the caller's expression that counts.
func TellsCounted(sql, source, event, columns, counted string) string {
	told := `, told AS (
		INSERT INTO webhook_deliveries (webhook_id, tenant_id, push_id, event, payload)
		SELECT w.id, (e.whole).tenant_id, (e.whole).id, e.event, push_event(e.event, e.whole)
		FROM (SELECT whole::pushes AS whole, ` + event + ` AS event FROM ` + source + `
			WHERE EXISTS (SELECT FROM webhooks WHERE disabled_at IS NULL AND deleted_at IS NULL) OFFSET 0) e
		JOIN webhooks w ON w.tenant_id = (e.whole).tenant_id AND w.disabled_at IS NULL AND w.deleted_at IS NULL AND e.event = ANY (w.events)
	)`
	return strings.NewReplacer("{whole}", columns+", p AS whole", "{told}", counted+told).Replace(sql)
}

// quiet returns a statement for [Tells] without events and counts.
func quiet(sql string) string { return strings.NewReplacer("{whole}", "", "{told}", "").Replace(sql) }

// Becomes returns an SQL literal with the event of a push that gets this status.
func Becomes(status push.Status) string { return `'push.` + string(status) + `'` }

// scheduled is the event of a push that gets its send time. Deferred is the event of a push that must wait longer than
// that.
const (
	scheduled = `'` + string(push.EventScheduled) + `'`
	Deferred  = `'` + string(push.EventDeferred) + `'`
)
