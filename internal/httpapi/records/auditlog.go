package records

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/auditlog"
	"github.com/sendquota/sendquota/internal/httpapi/lists"
	"github.com/sendquota/sendquota/internal/httpapi/pushes"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/rest"
)

const auditLogPath = "/v1/audit-log"

// logEntryView is an entry of the audit log.
type logEntryView struct {
	ID         string         `json:"id" format:"uuid"`
	At         string         `json:"at" format:"date-time"`
	Actor      actorView      `json:"actor"`
	Action     string         `json:"action" doc:"The action, for example key.create."`
	Target     targetView     `json:"target"`
	Difference rest.RawObject `json:"difference" doc:"For each changed member, its values as from and to; or changed: true; or the names of its changed members. Texts of messages, addresses, attributes and secrets are never shown."`
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

// logEntryViewOf shows an entry. Names are only shown to callers that may list users or keys.
func logEntryViewOf(c *rest.Call, e auditlog.Entry) logEntryView {
	known := func(of push.ActorType, name string) *string {
		if of == push.ActorUser && !c.Caller.May(push.ScopeUsersRead) || of == push.ActorKey && !c.Caller.May(push.ScopeKeysRead) {
			return nil
		}
		return rest.MaybeText(name)
	}
	target := e.Action.Type()
	return logEntryView{
		ID: e.ID.String(), At: rest.Stamp(e.At), Actor: actorView{e.Actor.Type, rest.MaybeID(e.Actor.ID), known(e.Actor.Type, e.ActorName)}, Action: string(e.Action),
		Target: targetView{target, rest.MaybeText(e.Target), known(push.ActorType(target), e.TargetName)}, Difference: rest.RawObject(e.Difference),
	}
}

// exportedEntry is an entry in an export.
type exportedEntry struct {
	logEntryView
	PageToken string `json:"page_token"`
}

// logLines writes the entries of an export.
var logLines = lists.Rows[exportedEntry]{
	Columns: []string{"id", "at", "actor_type", "actor_id", "actor_name", "action", "target_type", "target_id", "target_name", "difference", "page_token"},
	Cells: func(e *exportedEntry) []string {
		return []string{e.ID, e.At, string(e.Actor.Type), rest.OrBlank(e.Actor.ID), rest.OrBlank(e.Actor.Name), e.Action, e.Target.Type, rest.OrBlank(e.Target.ID), rest.OrBlank(e.Target.Name), string(e.Difference), e.PageToken}
	},
}

type auditLogView struct {
	Entries       []logEntryView `json:"entries" doc:"The latest first."`
	NextPageToken string         `json:"next_page_token" doc:"The page_token of the next page; empty only at the end of the list. A page before the end may have fewer entries than page_size, or none."`
}

// logFilter selects entries.
type logFilter struct {
	auditlog.Filter
	rest.PageParams
}

var logFields = []rest.Field[logFilter]{
	rest.Row("actor", rest.Optional, rest.Identifier(func(q *logFilter, id uuid.UUID) { q.Actor = id }), "Only actions of this user, or of the holder of this API key or link.", rest.ExampleID),
	rest.Row("actor_type", rest.Optional, rest.OneOf(func(q *logFilter, t push.ActorType) { q.ActorType = t }, push.ActorTypes...), "Only actions of actors of this type.", nil),
	rest.Row("action", rest.Optional, rest.OneOf(func(q *logFilter, a auditlog.Action) { q.Action = a }, auditlog.Actions...), "Only this action.", nil),
	rest.Row("target", rest.Optional, rest.Text(func(q *logFilter, s string) { q.Target = s }, 0, pushes.MaxRecipient), "Only actions on the target with this id.", rest.ExampleOtherID),
	rest.Row("from", rest.Optional, rest.Moment(func(q *logFilter, t time.Time) { q.From = t }), "Only actions at or after this time. RFC 3339 with a zone.", rest.TimeExample),
	rest.Row("until", rest.Optional, rest.Moment(func(q *logFilter, t time.Time) { q.Until = t }), "Only actions before this time. RFC 3339 with a zone.", rest.TimeExample),
	rest.PageToken[logFilter](rest.ExportedToken),
}

var (
	logParams       = rest.PagesOf(rest.MaxPageSize, rest.DefaultPageSize, logFields...)
	logExportParams = rest.Table[logFilter]{Fields: append(slices.Clip(logFields), lists.DialectParam[logFilter]())}
)

// listAuditLog answers with a page of the tenant's audit log.
func (h *auditLog) listAuditLog(c *rest.Call) error {
	return rest.List(c, &logParams, func(q logFilter, before auditlog.Position) ([]auditlog.Entry, *auditlog.Position, error) {
		page, err := h.svc.AuditLog(c.Request.Context(), c.Caller.Tenant, q.Filter, before, q.Size)
		return page.Entries, page.Next, err
	}, func(all []auditlog.Entry, next string) any {
		return auditLogView{rest.ViewsOf(all, func(e auditlog.Entry) logEntryView { return logEntryViewOf(c, e) }), next}
	})
}

// exportAuditLog streams the audit log. Each line has the token of the position after it.
func (h *auditLog) exportAuditLog(c *rest.Call) error {
	q, before, list := rest.ReadPage[auditlog.Position](c, &logExportParams)
	if err := c.Ready(rest.PageBytes); err != nil {
		return err
	}
	lines := func(entries []auditlog.Entry) []exportedEntry {
		return rest.ViewsOf(entries, func(e auditlog.Entry) exportedEntry {
			return exportedEntry{logEntryViewOf(c, e), rest.SealToken(auditlog.Position{At: e.At, ID: e.ID}, c.Caller.Tenant, list)}
		})
	}
	x := logLines
	x.Page = func(ctx context.Context) ([]exportedEntry, bool, error) {
		page, err := h.svc.AuditLog(ctx, c.Caller.Tenant, q.Filter, before, lists.ExportPage)
		if err != nil || page.Next == nil {
			return lines(page.Entries), false, err
		}
		before = *page.Next
		return lines(page.Entries), true, nil
	}
	return lists.Export(h.exports, c, x)
}

func (h *auditLog) routes(s *rest.Spec) []rest.Operation {
	example := logEntryViewOf(&rest.Call{Caller: push.Caller{Scopes: push.Scopes}}, auditlog.Entry{
		ID: uuid.MustParse("0193a1e0-5a7e-7c7f-9d6b-3f1f7f2f8f11"), At: rest.ExampleTime(0), Actor: push.Actor{Type: push.ActorKey, ID: uuid.MustParse(rest.ExampleID)},
		ActorName: "back office", Action: auditlog.PushMove, Target: rest.ExampleOtherID,
		Difference: json.RawMessage(`{"send_at": {"from": "` + rest.Stamp(rest.ExampleTime(0)) + `", "to": "` + rest.Stamp(rest.ExampleTime(time.Hour)) + `"}}`),
	})
	return []rest.Operation{{
		ID: "list-audit-log", Method: http.MethodGet, Path: auditLogPath, Tag: TagRecords, Scope: push.ScopeRecordsRead, Serve: h.listAuditLog,
		Summary: "List the audit log",
		Description: "Lists the changes made by users, holders of API keys and the operator, the latest first. The transaction of a change writes its entry. " +
			"Submits and uses of speed limits are not recorded. Filters can be combined; an empty one counts as absent. " +
			"A page ends early at about 1 MiB of entries, or after 10,000 entries were examined: the list continues while there is a next_page_token.",
		Query: &logParams, Status: http.StatusOK, Answer: "A page of the audit log.", Example: auditLogView{Entries: []logEntryView{example}},
	}, {
		ID: "export-audit-log", Method: http.MethodGet, Path: auditLogPath + "/export", Tag: TagRecords, Scope: push.ScopeRecordsRead, Serve: h.exportAuditLog,
		Summary: "Export the audit log",
		Description: "Streams all matching entries as CSV with a header line (Accept: text/csv) or as NDJSON (application/x-ndjson, the default). " +
			"If the connection breaks off, the list is incomplete. Each line ends with a page_token: an export with that token and the same filters continues after the line.\n\n" + lists.AboutGuards,
		Query: &logExportParams, Status: http.StatusOK, Answer: "The entries, one per line.", Example: "", Problems: []rest.Kind{rest.NotAcceptable},
		Finish: func(all map[string]*huma.Response) {
			lists.DocumentExport(all, logLines, exportedEntry{example, "AAZg9d2FBAA"})
		},
	}}
}
