package activity

import (
	"cmp"
	"encoding/json"
	"html/template"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/auditlog"
	"github.com/sendquota/sendquota/internal/console/frame"
	"github.com/sendquota/sendquota/internal/push"
)

// actionWords describes the actions of the audit log for people.
var actionWords = map[auditlog.Action]string{
	auditlog.KeyCreate: "created an API key", auditlog.KeyRotate: "rotated an API key", auditlog.KeyRevoke: "revoked an API key",
	auditlog.UserCreate: "created a user", auditlog.UserChange: "changed a user", auditlog.UserDelete: "deleted a user",
	auditlog.UserLink: "created a link to set a password", auditlog.UserEndSessions: "signed a user out",
	auditlog.WebhookCreate: "created a webhook", auditlog.WebhookDelete: "deleted a webhook", auditlog.WebhookEnable: "enabled a webhook",
	auditlog.WebhookRotateSecret: "rotated the secret of a webhook", auditlog.WebhookTest: "tested a webhook", auditlog.WebhookReplay: "resent events of a webhook",
	auditlog.ChannelCreate: "made a channel", auditlog.ChannelChange: "changed a channel", auditlog.ChannelDelete: "deleted a channel", auditlog.ChannelTest: "tested a channel",
	auditlog.PolicyChange: "changed the policy", auditlog.PolicyReset: "reset the policy to the default",
	auditlog.ScheduleCreate: "created a schedule", auditlog.ScheduleChange: "changed a schedule", auditlog.ScheduleDelete: "deleted a schedule",
	auditlog.CampaignCreate: "created a campaign", auditlog.CampaignChange: "changed a campaign", auditlog.CampaignAudience: "uploaded the audience of a campaign",
	auditlog.CampaignDelete: "deleted a campaign", auditlog.CampaignStart: "started a campaign", auditlog.CampaignPause: "paused a campaign",
	auditlog.CampaignResume: "resumed a campaign", auditlog.CampaignCancel: "canceled a campaign",
	auditlog.RecipientPut: "changed a recipient", auditlog.RecipientImport: "imported recipients", auditlog.RecipientErase: "erased a recipient",
	auditlog.SuppressionPut: "suppressed an address", auditlog.SuppressionDelete: "allowed a suppressed address again", auditlog.SuppressionImport: "imported suppressed addresses",
	auditlog.PushCancel: "canceled a message", auditlog.PushMove: "moved a message", auditlog.PushRetry: "retried a message",
	auditlog.BulkCreate: "started a bulk change", auditlog.BulkCancel: "stopped a bulk change",
	auditlog.PauseCreate: "paused sending", auditlog.PauseChange: "extended a pause", auditlog.PauseEnd: "resumed sending",
	auditlog.TenantCap: "changed the caps", auditlog.TenantRename: "renamed the tenant",
}

// actionName describes an action, or returns its name in the API if it has no description.
func actionName(action string) string {
	return cmp.Or(actionWords[auditlog.Action(action)], action)
}

// auditLogView is a page of the activity log.
type auditLogView struct {
	client.AuditLogPage
	Actions    []auditlog.Action
	ActorTypes []push.ActorType
}

// logFilters are the parameters of the URL that choose entries, besides from and until.
var logFilters = []string{"actor", "actor_type", "action", "target"}

// showAuditLog shows who did what, by a filter that stands in the URL.
func showAuditLog(p *frame.Page) error {
	view := &auditLogView{Actions: auditlog.Actions, ActorTypes: push.ActorTypes}
	if err := p.List("/v1/audit-log", 50, &view.AuditLogPage, append([]string{"page_token"}, logFilters...)...); err != nil {
		return p.ShowAgain(err, "auditlog", "Activity log", view)
	}
	return p.Show("auditlog", "Activity log", view)
}

// Actor names the user, key or program that acted.
func (v *auditLogView) Actor(a client.Actor) string {
	switch {
	case a.Type == client.ActorTypeSystem && a.Name != "":
		return "operator " + a.Name
	case a.Type == client.ActorTypeSystem:
		return "sendquota itself"
	}
	return string(a.Type) + " " + cmp.Or(a.Name, a.ID)
}

// Target is the name of what was changed, or its id.
func (v *auditLogView) Target(t client.Target) string { return cmp.Or(t.Name, t.ID) }

// filtered reports whether the URL chooses entries.
func filtered(p *frame.Page) bool {
	return slices.ContainsFunc(append([]string{"from", "until"}, logFilters...), func(name string) bool { return p.Query(name) != "" })
}

// logExport is the address of an export of what the filter chooses.
func logExport(p *frame.Page, format string) string {
	query := []string{"format", format}
	for _, name := range append([]string{"from", "until", frame.ZoneField}, logFilters...) {
		query = append(query, name, p.Query(name))
	}
	return p.Link("/proof/log/export", query...)
}

// targetLink is the page of what was changed; empty: it has none that this role can open.
func targetLink(p *frame.Page, e client.LogEntry) string {
	t := e.Target
	where := map[string]struct{ path, scope string }{
		"push": {"/pushes/", push.ScopeRead}, "campaign": {"/campaigns/", push.ScopeCampaignsRead}, "schedule": {"/schedules/", push.ScopeCampaignsRead},
		"recipient": {"/recipients/", push.ScopeQuota}, "webhook": {"/settings/webhooks/", push.ScopeHooks}, "user": {"/settings/users/", push.ScopeUsersRead},
		"channel": {"/settings/channels/own/", push.ScopeChannelsRead},
	}[t.Type]
	switch {
	case t.ID == "":
	case auditlog.Action(e.Action) == auditlog.PolicyReset && p.May(push.ScopePolicyRead):
		return p.Link("/policy") // this version is the operator's policy, and cannot be loaded
	case t.Type == "policy" && p.May(push.ScopePolicyRead):
		return p.Link("/policy", "version", t.ID)
	case where.path != "" && p.May(where.scope):
		return p.Link(where.path + frame.PathPart(t.ID))
	}
	return ""
}

// change is the old and new value of one member.
type change struct {
	Name     string
	From, To template.HTML // empty: there was, or is, nothing
	Only     string        // that it has changed, where its values are not shown
}

// changes returns the changes of a difference, sorted by name.
func changes(p *frame.Page, difference map[string]any) []change {
	var all []change
	for _, name := range slices.Sorted(maps.Keys(difference)) {
		c := change{Name: name}
		became, _ := difference[name].(map[string]any)
		if from, has := became["from"]; has {
			c.From = logPage(p, name, from)
		}
		if to, has := became["to"]; has {
			c.To = logPage(p, name, to)
		}
		switch what := became["changed"].(type) {
		case bool:
			c.Only = "has changed"
		case []any:
			c.Only = "has changed: " + textOf(what)
		}
		all = append(all, c)
	}
	return all
}

// loggedSpans are the names of what is a time span.
var loggedSpans = []string{"overlap", "shift", "spread", "expires_after"}

// logPage is a value of a difference: a moment as all moments, a time span in words, texts as they are, and all else as JSON.
func logPage(p *frame.Page, name string, value any) template.HTML {
	if at, err := time.Parse(time.RFC3339Nano, textOf(value)); err == nil {
		return p.Time(at)
	}
	if text := textOf(value); text != "" {
		if slices.Contains(loggedSpans, name) {
			text = frame.SpanWords(text)
		}
		return template.HTML(template.HTMLEscapeString(text))
	}
	text, err := json.Marshal(value)
	if err != nil {
		panic(err) // it came as JSON
	}
	return template.HTML(template.HTMLEscapeString(string(text)))
}

// textOf is a text, or a list of texts with commas; empty: it is something else.
func textOf(value any) string {
	switch value := value.(type) {
	case string:
		return value
	case []any:
		var all []string
		for _, one := range value {
			text, is := one.(string)
			if !is {
				return ""
			}
			all = append(all, text)
		}
		return strings.Join(all, ", ")
	}
	return ""
}

// exportAuditLog hands all entries on that the filter chooses, as CSV or NDJSON, while they are read.
func exportAuditLog(p *frame.Page) error {
	query, bad, err := p.Filter(logFilters...)
	if err := cmp.Or(err, bad.Problem()); err != nil {
		return err
	}
	f := client.ExportAuditLogOptions{Actor: query.Get("actor"), ActorType: query.Get("actor_type"), Action: query.Get("action"), Target: query.Get("target")}
	f.From, _ = time.Parse(time.RFC3339Nano, query.Get("from")) // filter wrote them
	f.Until, _ = time.Parse(time.RFC3339Nano, query.Get("until"))
	return p.Export("who-did-what", func(as client.Format, dialect string) (io.ReadCloser, error) {
		f.Dialect = dialect
		return p.API.Records.ExportAuditLog(p.Context(), f, as)
	})
}
