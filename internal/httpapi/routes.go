package httpapi

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sendquota/sendquota/internal/assets"
	"github.com/sendquota/sendquota/internal/push"
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
func newDocument() document {
	return document{
		title: "sendquota", about: aboutAPI, kinds: kinds(), example: exampleOf,
		keys: "An API key, created with `sendquota keys create` or by another key. Its scopes: " + strings.Join(push.Scopes, ", ") + ".",
		tags: []*huma.Tag{
			{Name: tagPushes, Description: "Submit, read, cancel and move pushes."},
			{Name: tagQuota, Description: "Read quotas. No operation here books anything."},
			{Name: tagPolicy, Description: "Set your own rules, categories and quiet hours."},
			{Name: tagRecipients, Description: "Describe recipients: time zones, addresses, opt-outs, own limits."},
			{Name: tagLimits, Description: "Use your own rate limits, for any key."},
			{Name: tagCampaigns, Description: "Send one message to everyone in an audience."},
			{Name: tagSchedules, Description: "Send a push or a campaign repeatedly, by cron."},
			{Name: tagRecords, Description: "List and count what was sent and refused."},
			{Name: tagWebhooks, Description: "Receive the events of pushes as signed requests to your endpoint."},
			{Name: tagChannels, Description: "Read the state of the channels."},
			{Name: tagKeys, Description: "Create API keys for the tenant, with fewer scopes or a limited lifetime."},
			{Name: tagUsers, Description: "Manage the users of the console and their sessions."},
			{Name: tagOperations, Description: "For operators. /metrics is for Prometheus."},
		},
	}
}

// knownPathParams has the parameters of all paths, by the path that ends with each.
var knownPathParams = map[string]pathParam{
	pushPath:                                     {name: "id", component: "push-id", description: "The push's id.", example: exampleID, logged: true},
	bulkPath + "/{id}":                           {name: "id", component: "bulk-change-id", description: "The bulk change's id.", example: exampleID},
	recipientsPath + "/{id}":                     {name: "id", component: "recipient-id", description: "The recipient, escaped for a path: a slash is %2F.", example: "user-42", maxText: maxRecipient},
	policyPath + "/operations/{id}":              {name: "id", component: "policy-operation-id", description: "The operation's id.", example: exampleID},
	campaignsPath + "/{id}":                      {name: "id", component: "campaign-id", description: "The campaign's id.", example: exampleID},
	schedulesPath + "/{id}":                      {name: "id", component: "schedule-id", description: "The schedule's id.", example: exampleID},
	webhooksPath + "/{id}":                       {name: "id", component: "webhook-id", description: "The webhook's id.", example: exampleID},
	webhooksPath + "/{id}/deliveries/{delivery}": {name: "delivery", component: "delivery-id", description: "The delivery's id.", example: exampleOtherID},
	keysPath + "/{id}":                           {name: "id", component: "key-id", description: "The key's id, which is not secret.", example: exampleID},
	usersPath + "/{id}":                          {name: "id", component: "user-id", description: "The user's id.", example: exampleID},
	usersPath + "/{id}/sessions/{session}":       {name: "session", component: "session-id", description: "The session's id.", example: exampleID},
}

// operations returns all operations, in the order of the documentation.
func (cfg *Config) operations(s *spec, svc *schedule.Service, now func() time.Time) []operation {
	return slices.Concat(
		pushOperations(s, svc, cfg.BulkChanges, cfg.Campaigns),
		recipientOperations(s, svc),
		policyOperations(s, cfg.Policies),
		limitOperations(s, cfg.Limiter),
		webhookOperations(s, cfg.Webhooks),
		scheduleOperations(s, cfg.Schedules, svc),
		campaignOperations(s, cfg.Campaigns, cfg.Simulator, svc, cfg.exports, cfg.simulations),
		recordOperations(s, RecordSources{
			Records: svc, Flows: cfg.Flows, Failures: cfg.Failures, Audits: cfg.Audits, Channels: cfg.Channels, Health: cfg.Health,
		}, cfg.exports, now),
		accountOperations(s, cfg.Keys, cfg.MaxKeys, cfg.Users, cfg.MaxUsers, cfg.PublicURL),
		(&probes{cfg.Health}).routes(s),
	)
}

// pages serves the pages that are no operations.
func (cfg *Config) pages(a *api) {
	a.page(metricsPath, cfg.Metrics)
	a.page("/", http.RedirectHandler("/docs", http.StatusFound))
	a.page("/openapi.json", assets.Drawn(a.openAPIPage))
	if !cfg.BesideConsole {
		tryPage(a)
	}
	a.page("/docs", assets.Drawn(func() *assets.Page { return a.docsPage(kinds(), !cfg.BesideConsole) }))
}
