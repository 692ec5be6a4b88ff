package store

import (
	"strings"

	"github.com/sendquota/sendquota/internal/push"
)

// telling is a statement that changes pushes. Triggers write events of what is done to the table pushes itself, for the webhooks
// that want them. A statement that names a partition writes them itself.
type telling struct{ whole, part string }

// tells makes the statement from one in which a common table expression, source, returns changed pushes p, with {whole} behind
// its columns, and {told} stands behind the last such expression. event is an expression over the columns of source; where it
// is null, there is no event. What has ended is counted, too.
func tells(sql, source, event string) telling {
	if event == scheduled || event == deferred { // nothing ends
		return tellsCounted(sql, source, event, "", "")
	}
	return tellsCounted(sql, source, event, endedColumns, countEnded(source, `of_end`))
}

// tellsCounted is tells for a statement that returns other columns to be counted, and counts by an expression of its own.
func tellsCounted(sql, source, event, columns, counted string) telling {
	told := `, told AS (
		INSERT INTO webhook_deliveries (webhook_id, tenant_id, push_id, event, payload)
		SELECT w.id, (e.whole).tenant_id, (e.whole).id, e.event, push_event(e.event, e.whole)
		FROM (SELECT whole::pushes AS whole, ` + event + ` AS event FROM ` + source + `
			WHERE EXISTS (SELECT FROM webhooks WHERE disabled_at IS NULL AND deleted_at IS NULL) OFFSET 0) e
		JOIN webhooks w ON w.tenant_id = (e.whole).tenant_id AND w.disabled_at IS NULL AND w.deleted_at IS NULL AND e.event = ANY (w.events)
	)`
	return telling{
		whole: strings.NewReplacer("{whole}", columns, "{told}", counted).Replace(sql),
		part:  strings.NewReplacer("{whole}", columns+", p AS whole", "{told}", counted+told).Replace(sql),
	}
}

// sql is the statement for a table of pushes.
func (t telling) sql(table string) string {
	if table == weeksOfPushes.parent {
		return in(t.whole, "{pushes}", table)
	}
	return in(t.part, "{pushes}", table)
}

// becomes is the event of a push that has this status.
func becomes(status push.Status) string { return `'push.` + string(status) + `'` }

// scheduled and deferred are the events of a push that got its send time, and of one that waits longer than until that.
const (
	scheduled = `'` + string(push.EventScheduled) + `'`
	deferred  = `'` + string(push.EventDeferred) + `'`
)
