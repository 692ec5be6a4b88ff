package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
)

const auditLogPath = "/v1/audit-log"

// logEntryView is an entry of the audit log.
type logEntryView struct {
	ID         string     `json:"id" format:"uuid"`
	At         string     `json:"at" format:"date-time"`
	Actor      actorView  `json:"actor"`
	Action     string     `json:"action" doc:"The action, for example key.create."`
	Target     targetView `json:"target"`
	Difference rawObject  `json:"difference" doc:"For each changed member, its values as from and to; or changed: true; or the names of its changed members. Texts of messages, addresses, attributes and secrets are never shown."`
}

type actorView struct {
	Type push.ActorType `json:"type" enum:"user,key,link,system" doc:"link: a person who opened a user's link and set the password; the entry of its creation shows its id as link. system: a worker, or the operator's tool."`
	ID   *string        `json:"id" format:"uuid" nullable:"true" doc:"The id of the user or the API key; null: the system."`
	Name *string        `json:"name" nullable:"true" doc:"The current name of the user (or the e-mail address) or of the API key; for an operator, user@host. null: there is no name, the actor no longer exists, or the caller lacks users:read or keys:read."`
}

type targetView struct {
	Type string  `json:"type" doc:"For example key, campaign or push."`
	ID   *string `json:"id" nullable:"true" doc:"For a policy, its version. null: an erased recipient, or an import."`
	Name *string `json:"name" nullable:"true" doc:"The name of a user or an API key, as for the actor; null: any other target."`
}

// logEntryView shows an entry. Names are for those who may list what bears them.
func (c *call) logEntryView(e push.LogEntry) logEntryView {
	known := func(of push.ActorType, name string) *string {
		if of == push.ActorUser && !c.caller.May(push.ScopeUsersRead) || of == push.ActorKey && !c.caller.May(push.ScopeKeysRead) {
			return nil
		}
		return maybeText(name)
	}
	target := e.Action.Type()
	return logEntryView{
		ID: e.ID.String(), At: stamp(e.At), Actor: actorView{e.Actor.Type, maybeID(e.Actor.ID), known(e.Actor.Type, e.ActorName)}, Action: string(e.Action),
		Target: targetView{target, maybeText(e.Target), known(push.ActorType(target), e.TargetName)}, Difference: rawObject(e.Difference),
	}
}

// exportedEntry is an entry in an export.
type exportedEntry struct {
	logEntryView
	PageToken string `json:"page_token"`
}

// logLines are the entries of an export.
var logLines = exported[exportedEntry]{
	columns: []string{"id", "at", "actor_type", "actor_id", "actor_name", "action", "target_type", "target_id", "target_name", "difference", "page_token"},
	cells: func(e *exportedEntry) []string {
		return []string{e.ID, e.At, string(e.Actor.Type), orBlank(e.Actor.ID), orBlank(e.Actor.Name), e.Action, e.Target.Type, orBlank(e.Target.ID), orBlank(e.Target.Name), string(e.Difference), e.PageToken}
	},
}

type auditLogView struct {
	Entries       []logEntryView `json:"entries" doc:"The latest first."`
	NextPageToken string         `json:"next_page_token" doc:"The page_token of the next page; empty only at the end of the list. A page before the end may have fewer entries than page_size, or none."`
}

// logFilter is which entries are asked for.
type logFilter struct {
	push.LogFilter
	pageParams
}

var logFields = []field[logFilter]{
	row("actor", optional, identifier(func(q *logFilter, id uuid.UUID) { q.Actor = id }), "Only actions of this user, or of the holder of this API key or link.", exampleID),
	row("actor_type", optional, oneOf(func(q *logFilter, t push.ActorType) { q.ActorType = t }, push.ActorTypes...), "Only actions of actors of this type.", nil),
	row("action", optional, oneOf(func(q *logFilter, a push.Action) { q.Action = a }, push.Actions...), "Only this action.", nil),
	row("target", optional, text(func(q *logFilter, s string) { q.Target = s }, 0, maxRecipient), "Only actions on the target with this id.", exampleOtherID),
	row("from", optional, moment(func(q *logFilter, t time.Time) { q.From = t }), "Only actions at or after this time. RFC 3339 with a zone.", timeExample),
	row("until", optional, moment(func(q *logFilter, t time.Time) { q.Until = t }), "Only actions before this time. RFC 3339 with a zone.", timeExample),
	pageToken[logFilter](exportedToken),
}

var (
	logParams       = pagesOf(maxPageSize, defaultPageSize, logFields...)
	logExportParams = table[logFilter]{fields: append(slices.Clip(logFields), dialectParam[logFilter]())}
)

// listAuditLog answers with a page of the tenant's audit log.
func (h *auditLog) listAuditLog(c *call) error {
	return list(c, &logParams, func(q logFilter, before push.LogPosition) ([]push.LogEntry, *push.LogPosition, error) {
		page, err := h.svc.AuditLog(c.r.Context(), c.caller.Tenant, q.LogFilter, before, q.size)
		return page.Entries, page.Next, err
	}, func(all []push.LogEntry, next string) any { return auditLogView{viewsOf(all, c.logEntryView), next} })
}

// exportAuditLog answers with all of it. Each line has the token of what follows it.
func (h *auditLog) exportAuditLog(c *call) error {
	q, before, list := readPage[push.LogPosition](c, &logExportParams)
	if err := c.ready(pageBytes); err != nil {
		return err
	}
	lines := func(entries []push.LogEntry) []exportedEntry {
		return viewsOf(entries, func(e push.LogEntry) exportedEntry {
			return exportedEntry{c.logEntryView(e), sealToken(push.LogPosition{At: e.At, ID: e.ID}, c.caller.Tenant, list)}
		})
	}
	x := logLines
	x.page = func(ctx context.Context) ([]exportedEntry, bool, error) {
		page, err := h.svc.AuditLog(ctx, c.caller.Tenant, q.LogFilter, before, exportPage)
		if err != nil || page.Next == nil {
			return lines(page.Entries), false, err
		}
		before = *page.Next
		return lines(page.Entries), true, nil
	}
	return export(h.exports, c, x)
}

func (h *auditLog) routes(s *spec) []operation {
	example := (&call{caller: push.Caller{Scopes: push.Scopes}}).logEntryView(push.LogEntry{
		ID: uuid.MustParse("0193a1e0-5a7e-7c7f-9d6b-3f1f7f2f8f11"), At: exampleTime(0), Actor: push.Actor{Type: push.ActorKey, ID: uuid.MustParse(exampleID)},
		ActorName: "back office", Action: push.ActPushMove, Target: exampleOtherID,
		Difference: json.RawMessage(`{"send_at": {"from": "` + stamp(exampleTime(0)) + `", "to": "` + stamp(exampleTime(time.Hour)) + `"}}`),
	})
	return []operation{{
		id: "list-audit-log", method: http.MethodGet, path: auditLogPath, tag: tagRecords, scope: push.ScopeRecordsRead, serve: h.listAuditLog,
		summary: "List the audit log",
		description: "Lists the changes made by users, holders of API keys and the operator, the latest first. The transaction of a change writes its entry. " +
			"Submits and uses of speed limits are not recorded. Filters can be combined; an empty one counts as absent. " +
			"A page ends early at about 1 MiB of entries, or after 10,000 entries were examined: the list continues while there is a next_page_token.",
		query: &logParams, status: http.StatusOK, answer: "A page of the audit log.", example: auditLogView{Entries: []logEntryView{example}},
	}, {
		id: "export-audit-log", method: http.MethodGet, path: auditLogPath + "/export", tag: tagRecords, scope: push.ScopeRecordsRead, serve: h.exportAuditLog,
		summary: "Export the audit log",
		description: "Streams all matching entries as CSV with a header line (Accept: text/csv) or as NDJSON (application/x-ndjson, the default). " +
			"If the connection breaks off, the list is incomplete. Each line ends with a page_token: an export with that token and the same filters continues after the line.\n\n" + aboutGuards,
		query: &logExportParams, status: http.StatusOK, answer: "The entries, one per line.", example: "", problems: []kind{notAcceptable},
		finish: func(all map[string]*huma.Response) { exports(all, logLines, exportedEntry{example, "AAZg9d2FBAA"}) },
	}}
}
