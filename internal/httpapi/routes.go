package httpapi

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sendquota/sendquota/internal/assets"
	"github.com/sendquota/sendquota/internal/httpapi/accounts"
	"github.com/sendquota/sendquota/internal/httpapi/campaigns"
	"github.com/sendquota/sendquota/internal/httpapi/channels"
	"github.com/sendquota/sendquota/internal/httpapi/limits"
	"github.com/sendquota/sendquota/internal/httpapi/pauses"
	"github.com/sendquota/sendquota/internal/httpapi/policies"
	"github.com/sendquota/sendquota/internal/httpapi/pushes"
	"github.com/sendquota/sendquota/internal/httpapi/recipients"
	"github.com/sendquota/sendquota/internal/httpapi/records"
	"github.com/sendquota/sendquota/internal/httpapi/schedules"
	"github.com/sendquota/sendquota/internal/httpapi/suppressions"
	"github.com/sendquota/sendquota/internal/httpapi/webhooks"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/rest"
	"github.com/sendquota/sendquota/internal/schedule"
)

const (
	healthPath  = "/healthz"
	readyPath   = "/readyz"
	metricsPath = "/metrics"

	tagOperations = "Operations"
)

const aboutAPI = `sendquota accepts messages for a person at a future time, reserves a place in that person's send quota at the send time, and delivers each message then.

Times in requests are RFC 3339 with a zone; times in answers are UTC, send times in whole seconds. Every answer has an X-Request-Id; a valid one in the request is kept. Errors are RFC 9457 problems with stable types; the answer to an invalid request lists every error, with its location and value.`

// newDocument returns the description of the API.
func newDocument() rest.Document {
	return rest.Document{
		Title: "sendquota", About: aboutAPI, Kinds: kinds(), Example: exampleOf,
		Keys: "An API key, created with `sendquota keys create` or by another key. Its scopes: " + strings.Join(push.Scopes, ", ") + ".",
		Tags: []*huma.Tag{
			{Name: pushes.TagPushes, Description: "Submit, read, cancel and move pushes."},
			{Name: pushes.TagQuota, Description: "Read quotas. No operation here books anything."},
			{Name: policies.Tag, Description: "Set your own rules, categories and quiet hours."},
			{Name: recipients.Tag, Description: "Describe recipients: time zones, addresses, opt-outs, own limits."},
			{Name: suppressions.Tag, Description: "Keep addresses to which nothing is sent."},
			{Name: limits.Tag, Description: "Use your own rate limits, for any key."},
			{Name: campaigns.Tag, Description: "Send one message to everyone in an audience."},
			{Name: pauses.Tag, Description: "Stop sending, and resume."},
			{Name: schedules.Tag, Description: "Send a push or a campaign repeatedly, by cron."},
			{Name: records.TagRecords, Description: "List and count what was sent and refused."},
			{Name: webhooks.Tag, Description: "Receive the events of pushes as signed requests to your endpoint."},
			{Name: records.TagChannels, Description: "Read the state of the channels, and make your own."},
			{Name: accounts.TagKeys, Description: "Create API keys for the tenant, with fewer scopes or a limited lifetime."},
			{Name: accounts.TagUsers, Description: "Manage the users of the console and their sessions."},
			{Name: tagOperations, Description: "For operators. /metrics is for Prometheus."},
		},
	}
}

// knownPathParams has the parameters of all paths, by the path that ends with each.
var knownPathParams = map[string]rest.PathParam{
	pushes.PushPath:                                 {Name: "id", Component: "push-id", Description: "The push's id.", Example: rest.ExampleID, Logged: true},
	pushes.BulkPath + "/{id}":                       {Name: "id", Component: "bulk-change-id", Description: "The bulk change's id.", Example: rest.ExampleID},
	recipients.Path + "/{id}":                       {Name: "id", Component: "recipient-id", Description: "The recipient, escaped for a path: a slash is %2F.", Example: "user-42", MaxText: pushes.MaxRecipient},
	policies.Path + "/operations/{id}":              {Name: "id", Component: "policy-operation-id", Description: "The operation's id.", Example: rest.ExampleID},
	campaigns.Path + "/{id}":                        {Name: "id", Component: "campaign-id", Description: "The campaign's id.", Example: rest.ExampleID},
	pauses.Path + "/{id}":                           {Name: "id", Component: "pause-id", Description: "The pause's id.", Example: rest.ExampleID},
	schedules.Path + "/{id}":                        {Name: "id", Component: "schedule-id", Description: "The schedule's id.", Example: rest.ExampleID},
	webhooks.Path + "/{id}":                         {Name: "id", Component: "webhook-id", Description: "The webhook's id.", Example: rest.ExampleID},
	webhooks.Path + "/{id}/deliveries/{delivery}":   {Name: "delivery", Component: "delivery-id", Description: "The delivery's id.", Example: rest.ExampleOtherID},
	channels.Path:                                   {Name: "name", Component: "channel-name", Description: "The channel's name.", Example: "sms", MaxText: 64},
	accounts.KeysPath + "/{id}":                     {Name: "id", Component: "key-id", Description: "The key's id, which is not secret.", Example: rest.ExampleID},
	accounts.UsersPath + "/{id}":                    {Name: "id", Component: "user-id", Description: "The user's id.", Example: rest.ExampleID},
	accounts.UsersPath + "/{id}/sessions/{session}": {Name: "session", Component: "session-id", Description: "The session's id.", Example: rest.ExampleID},
}

// operations returns all operations, in the order of the documentation.
func (cfg *Config) operations(s *rest.Spec, svc *schedule.Service, now func() time.Time) []rest.Operation {
	return slices.Concat(
		pushes.Operations(s, svc, cfg.BulkChanges, cfg.Campaigns),
		recipients.Operations(s, svc),
		suppressions.Operations(s, svc, cfg.exports),
		policies.Operations(s, cfg.Policies),
		limits.Operations(s, cfg.Limiter),
		webhooks.Operations(s, cfg.Webhooks),
		pauses.Operations(s, cfg.Pauses, pauses.Names{Channels: svc.Channels, Categories: cfg.Policies.Categories}),
		schedules.Operations(s, cfg.Schedules, svc),
		campaigns.Operations(s, cfg.Campaigns, cfg.Simulator, svc, cfg.exports, cfg.simulations),
		records.Operations(s, records.Sources{
			Records: svc, Flows: cfg.Flows, Failures: cfg.Failures, Audits: cfg.Audits, Channels: cfg.Channels, Health: cfg.Health,
		}, cfg.exports, now),
		channels.Operations(s, cfg.OwnChannels, records.TagChannels),
		accounts.Operations(s, cfg.Keys, cfg.MaxKeys, cfg.Users, cfg.MaxUsers, cfg.PublicURL),
		(&probes{cfg.Health}).routes(s),
	)
}

// pages serves the pages that are no operations.
func (cfg *Config) pages(a *rest.API) {
	a.Page(metricsPath, cfg.Metrics)
	a.Page("/", http.RedirectHandler("/docs", http.StatusFound))
	a.Page("/openapi.json", assets.Drawn(a.OpenAPIPage))
	if !cfg.BesideConsole {
		tryPage(a)
	}
	a.Page("/docs", assets.Drawn(func() *assets.Page { return a.DocsPage(kinds(), !cfg.BesideConsole) }))
}
