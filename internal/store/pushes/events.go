package pushes

import (
	"strings"

	"github.com/sendquota/sendquota/internal/push"
)

// Tells makes a statement that changes pushes write their events for the webhooks that want them. In the statement a common table
// expression, source, returns changed pushes p, with {whole} behind its columns, and {told} stands behind the last such expression. event
// is an expression over the columns of source; where it is null, there is no event. Ends of pushes are counted, too.
func Tells(sql, source, event string) string {
	if event == scheduled || event == Deferred { // nothing ends
		return TellsCounted(sql, source, event, "", "")
	}
	return TellsCounted(sql, source, event, endedColumns, CountEnded(source, `of_end`))
}

// TellsCounted is tells for a statement that returns other columns to be counted, and counts by an expression of its own.
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

// quiet is a statement of [Tells] without its events.
func quiet(sql string) string { return strings.NewReplacer("{whole}", "", "{told}", "").Replace(sql) }

// Becomes is the event of a push that has this status.
func Becomes(status push.Status) string { return `'push.` + string(status) + `'` }

// scheduled and deferred are the events of a push that got its send time, and of one that waits longer than until that.
const (
	scheduled = `'` + string(push.EventScheduled) + `'`
	Deferred  = `'` + string(push.EventDeferred) + `'`
)
