package pushes

import (
	"strings"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/webhook"
)

// WithEvents completes a statement that changes pushes, so that it also writes webhook events and counts pushes that end. In
// the statement, the common table expression source returns the changed pushes p, with {whole} after its columns; {events}
// follows the last common table expression. event is an expression over the columns of source; null writes no event.
func WithEvents(sql, source, event string) string {
	if event == scheduledEvent || event == DeferredEvent { // nothing ends
		return WithEventsAndCounts(sql, source, event, "", "")
	}
	return WithEventsAndCounts(sql, source, event, endedColumns, CountEnded(source, `of_end`))
}

// WithEventsAndCounts does what [WithEvents] does, with the caller's columns to count and the caller's expression that counts.
func WithEventsAndCounts(sql, source, event, columns, counted string) string {
	events := `, events AS (
		INSERT INTO webhook_deliveries (webhook_id, tenant_id, push_id, event, payload)
		SELECT w.id, (e.whole).tenant_id, (e.whole).id, e.event, push_event(e.event, e.whole)
		FROM (SELECT whole::pushes AS whole, ` + event + ` AS event FROM ` + source + `
			WHERE EXISTS (SELECT FROM webhooks WHERE disabled_at IS NULL AND deleted_at IS NULL) OFFSET 0) e
		JOIN webhooks w ON w.tenant_id = (e.whole).tenant_id AND w.disabled_at IS NULL AND w.deleted_at IS NULL AND e.event = ANY (w.events)
	)`
	return strings.NewReplacer("{whole}", columns+", p AS whole", "{events}", counted+events).Replace(sql)
}

// withoutEvents returns a statement for [WithEvents] without events and counts.
func withoutEvents(sql string) string {
	return strings.NewReplacer("{whole}", "", "{events}", "").Replace(sql)
}

// StatusEvent returns an SQL literal with the event of a push that gets this status.
func StatusEvent(status push.Status) string { return `'push.` + string(status) + `'` }

// scheduledEvent is the event of a push that gets its send time. DeferredEvent is the event of a push that must wait longer than
// that.
const (
	scheduledEvent = `'` + string(webhook.EventScheduled) + `'`
	DeferredEvent  = `'` + string(webhook.EventDeferred) + `'`
)
