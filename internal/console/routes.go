package console

import (
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"

	"github.com/sendquota/sendquota/internal/push"
)

// The paths that others need to know.
const (
	root       = "/console"
	homePath   = root + "/now"
	signInPath = root + "/sign-in"
)

// routes are all pages, each with the scope that its users need. Where a page makes further calls, the API asks for theirs.
func (c *console) routes(r chi.Router) {
	get := func(path, scope string, h handler) { r.Get(root+path, c.serve(scope, shortForm, h)) }
	post := func(path, scope string, h handler) { r.Post(root+path, c.serve(scope, shortForm, h)) }
	long := func(path, scope string, h handler) { r.Post(root+path, c.serve(scope, longForm, h)) }
	// form is a form without a page of its own. A browser that opens its address again, as after an answer or a sign-in, is led back.
	form := func(path, back, scope string, h handler) {
		get(path, "", backTo(back))
		post(path, scope, h)
	}

	r.Get(root, redirectTo(homePath))
	r.Get(root+"/", redirectTo(homePath))
	c.auth.mount(r, c)
	r.Handle(root+"/static/*", c.screens.files)
	r.Handle(root+"/vendor/*", c.screens.files)

	get("/recipients", push.ScopeQuota, (*page).recipients)
	get("/recipients/{id}", push.ScopeQuota, (*page).recipient)
	get("/recipients/{id}/free", push.ScopeQuota, (*page).freeWithout)
	get("/recipients/{id}/submit", "", backTo("/recipients/{id}"))
	long("/recipients/{id}/submit", push.ScopeWrite, (*page).submitPush)
	for name, h := range map[string]handler{"move": (*page).movePush, "cancel": (*page).cancelOnAxis} {
		form("/recipients/{id}/"+name, "/recipients/{id}", push.ScopeWrite, h)
	}
	get("/now", push.ScopeRecordsRead, (*page).now)
	get("/now/live", push.ScopeRecordsRead, (*page).nowLive)

	get("/calendar", push.ScopeRecordsRead, (*page).calendar)
	get("/calendar/campaigns/{id}", draftScope, (*page).moveCampaign)
	post("/calendar/campaigns/{id}", draftScope, (*page).saveMove)

	get("/pushes", push.ScopeRead, (*page).pushes)
	get("/pushes/new", push.ScopeWrite, (*page).newPush)
	long("/pushes/new", push.ScopeWrite, (*page).submitOnePush)
	get("/pushes/bulk", push.ScopeWrite, (*page).bulk)
	post("/pushes/bulk", push.ScopeWrite, (*page).startBulk)
	get("/pushes/bulk/{id}", push.ScopeRead, (*page).bulkChange)
	get("/pushes/bulk/{id}/live", push.ScopeRead, (*page).bulkLive)
	form("/pushes/bulk/{id}/stop", "/pushes/bulk/{id}", push.ScopeWrite, (*page).stopBulk)
	get("/pushes/{id}", push.ScopeRead, (*page).push)
	for name, h := range map[string]handler{"cancel": (*page).cancelPush, "move": (*page).moveOnePush, "retry": (*page).retryOnePush} {
		get("/pushes/{id}/"+name, push.ScopeRead, (*page).push)
		post("/pushes/{id}/"+name, push.ScopeWrite, h)
	}

	get("/failures", push.ScopeRecordsRead, (*page).failures)
	get("/failures/retry", push.ScopeRecordsRead, (*page).failures)
	long("/failures/retry", push.ScopeWrite, (*page).retryFailures)

	get("/campaigns", push.ScopeCampaignsRead, (*page).campaigns)
	get("/campaigns/new", draftScope, (*page).newCampaign)
	long("/campaigns/new", draftScope, (*page).createCampaign)
	get("/campaigns/{id}", push.ScopeCampaignsRead, (*page).campaign)
	get("/campaigns/{id}/message", draftScope, draft((*page).showMessage))
	long("/campaigns/{id}/message", draftScope, draft((*page).changeMessage))
	get("/campaigns/{id}/audience", draftScope, draft((*page).showAudience))
	post("/campaigns/{id}/audience", draftScope, draft((*page).putAudience))
	form("/campaigns/{id}/audience/columns", "/campaigns/{id}/audience", draftScope, draft((*page).showColumns))
	get("/campaigns/{id}/audience/bad-lines", "", backTo("/campaigns/{id}/audience"))
	long("/campaigns/{id}/audience/bad-lines", push.ScopeCampaignsRead, (*page).badLines)
	get("/campaigns/{id}/preview", push.ScopeCampaignsRead, draft((*page).previewDraft))
	get("/campaigns/{id}/when", draftScope, draft((*page).showWhen))
	post("/campaigns/{id}/when", draftScope, draft((*page).changeWhen))
	form("/campaigns/{id}/send-at", "/campaigns/{id}/simulation", draftScope, draft((*page).takeStart))
	get("/campaigns/{id}/simulation", push.ScopeCampaignsRead, draft((*page).simulateDraft))
	get("/campaigns/{id}/start", startScope, draft((*page).showStart))
	post("/campaigns/{id}/start", startScope, draft((*page).startCampaign))
	form("/campaigns/{id}/delete", "/campaigns/{id}", draftScope, (*page).deleteCampaign)
	get("/campaigns/{id}/live", push.ScopeCampaignsRead, (*page).followCampaign)
	form("/campaigns/{id}/pause", "/campaigns/{id}", startScope, (*page).pauseCampaign)
	form("/campaigns/{id}/resume", "/campaigns/{id}", startScope, (*page).resumeCampaign)
	get("/campaigns/{id}/cancel", startScope, (*page).askCancel)
	post("/campaigns/{id}/cancel", startScope, (*page).cancelCampaign)
	get("/campaigns/{id}/recipients", push.ScopeCampaignsRead, (*page).campaignRecipients)
	get("/campaigns/{id}/export", push.ScopeCampaignsRead, (*page).exportCampaign)

	get("/why", push.ScopeQuota, (*page).why)
	get("/why/book", "", backTo("/why"))
	long("/why/book", push.ScopeWrite, (*page).bookThen)

	get("/schedules", push.ScopeCampaignsRead, (*page).schedules)
	get("/schedules/new", push.ScopeCampaignsWrite, (*page).newSchedule)
	long("/schedules/new", push.ScopeCampaignsWrite, (*page).createSchedule)
	get("/schedules/{id}", push.ScopeCampaignsRead, (*page).schedule)
	long("/schedules/{id}", push.ScopeCampaignsWrite, (*page).changeSchedule)
	form("/schedules/{id}/delete", "/schedules/{id}", push.ScopeCampaignsWrite, (*page).deleteSchedule)

	get("/policy", push.ScopePolicyRead, (*page).policy)
	long("/policy", push.ScopePolicyWrite, (*page).savePolicy)
	form("/policy/delete", "/policy", push.ScopePolicyWrite, (*page).deletePolicy)

	get("/settings", "", (*page).settings)
	get("/settings/keys", push.ScopeKeysRead, (*page).keys)
	post("/settings/keys", push.ScopeKeysWrite, (*page).createKey)
	form("/settings/keys/{id}/rotate", "/settings/keys", push.ScopeKeysWrite, (*page).rotateKey)
	form("/settings/keys/{id}/revoke", "/settings/keys", push.ScopeKeysWrite, (*page).revokeKey)
	get("/settings/webhooks", push.ScopeHooks, (*page).webhooks)
	post("/settings/webhooks", push.ScopeHooks, (*page).createWebhook)
	get("/settings/webhooks/{id}", push.ScopeHooks, (*page).webhook)
	post("/settings/webhooks/{id}", push.ScopeHooks, (*page).actOnWebhook)
	get("/settings/channels", push.ScopeRead, (*page).channels)
	long("/settings/channels", push.ScopeWrite, (*page).testSend)
	get("/settings/caps", push.ScopeRead, (*page).caps)
	get("/settings/users", push.ScopeUsersRead, (*page).users)
	post("/settings/users", push.ScopeUsersWrite, (*page).createUser)
	get("/settings/users/{id}", push.ScopeUsersRead, (*page).user)
	post("/settings/users/{id}", push.ScopeUsersWrite, (*page).actOnUser)
	get("/settings/sessions", push.ScopeUsersRead, (*page).mySessions)
	post("/settings/sessions", push.ScopeUsersRead, (*page).endMySessions)

	get("/proof", push.ScopeRecordsRead, (*page).proof)
	get("/proof/log", push.ScopeRecordsRead, (*page).auditLog)
	get("/proof/log/export", push.ScopeRecordsRead, (*page).exportAuditLog)

	r.NotFound(c.serve("", shortForm, (*page).notFound))
	r.MethodNotAllowed(c.serve("", shortForm, (*page).notFound))
}

// navigation are the entries of the menu, by value for the people who look there.
var navigation = []navItem{
	{"/now", "Now", push.ScopeRecordsRead},
	{"/recipients", "Recipients", push.ScopeQuota},
	{"/why", "Why not sent?", push.ScopeQuota},
	{"/campaigns", "Campaigns", push.ScopeCampaignsRead},
	{"/calendar", "Calendar", push.ScopeRecordsRead},
	{"/pushes", "Messages", push.ScopeRead},
	{"/failures", "Failures", push.ScopeRecordsRead},
	{"/schedules", "Schedules", push.ScopeCampaignsRead},
	{"/policy", "Policy", push.ScopePolicyRead},
	{"/settings", "Settings", ""},
	{"/proof", "Audit", push.ScopeRecordsRead},
}

func redirectTo(path string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, path, http.StatusSeeOther) }
}

// backTo leads to the page of a form, whose path has the same parts, with the same query.
func backTo(path string) handler {
	return func(p *page) error {
		to := strings.Replace(root+path, "{id}", pathPart(p.param("id")), 1)
		return p.redirect(withQuery(to, p.r.URL.Query(), nil))
	}
}
