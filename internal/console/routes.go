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

	get("/recipients", push.ScopeQuota, showRecipients)
	get("/recipients/{id}", push.ScopeQuota, showRecipient)
	get("/recipients/{id}/free", push.ScopeQuota, freeWithout)
	get("/recipients/{id}/submit", "", backTo("/recipients/{id}"))
	long("/recipients/{id}/submit", push.ScopeWrite, submitPush)
	for name, h := range map[string]handler{"move": movePush, "cancel": cancelOnAxis} {
		form("/recipients/{id}/"+name, "/recipients/{id}", push.ScopeWrite, h)
	}
	get("/now", push.ScopeRecordsRead, showNow)
	get("/now/live", push.ScopeRecordsRead, streamNow)

	get("/calendar", push.ScopeRecordsRead, showCalendar)
	get("/calendar/campaigns/{id}", draftScope, moveCampaign)
	post("/calendar/campaigns/{id}", draftScope, saveMove)

	get("/pushes", push.ScopeRead, showPushes)
	get("/pushes/new", push.ScopeWrite, newPush)
	long("/pushes/new", push.ScopeWrite, submitOnePush)
	get("/pushes/bulk", push.ScopeWrite, showBulk)
	post("/pushes/bulk", push.ScopeWrite, startBulk)
	get("/pushes/bulk/{id}", push.ScopeRead, showBulkChange)
	get("/pushes/bulk/{id}/live", push.ScopeRead, streamBulkChange)
	form("/pushes/bulk/{id}/stop", "/pushes/bulk/{id}", push.ScopeWrite, stopBulk)
	get("/pushes/{id}", push.ScopeRead, showPush)
	for name, h := range map[string]handler{"cancel": cancelPush, "move": moveOnePush, "retry": retryOnePush} {
		get("/pushes/{id}/"+name, push.ScopeRead, showPush)
		post("/pushes/{id}/"+name, push.ScopeWrite, h)
	}

	get("/failures", push.ScopeRecordsRead, showFailures)
	get("/failures/retry", push.ScopeRecordsRead, showFailures)
	long("/failures/retry", push.ScopeWrite, retryFailures)

	get("/campaigns", push.ScopeCampaignsRead, showCampaigns)
	get("/campaigns/new", draftScope, newCampaign)
	long("/campaigns/new", draftScope, createCampaign)
	get("/campaigns/{id}", push.ScopeCampaignsRead, showCampaign)
	get("/campaigns/{id}/message", draftScope, draft(showMessage))
	long("/campaigns/{id}/message", draftScope, draft(changeMessage))
	get("/campaigns/{id}/audience", draftScope, draft(showAudience))
	post("/campaigns/{id}/audience", draftScope, draft(putAudience))
	form("/campaigns/{id}/audience/columns", "/campaigns/{id}/audience", draftScope, draft(showColumns))
	get("/campaigns/{id}/audience/bad-lines", "", backTo("/campaigns/{id}/audience"))
	long("/campaigns/{id}/audience/bad-lines", push.ScopeCampaignsRead, downloadBadRows)
	get("/campaigns/{id}/preview", push.ScopeCampaignsRead, draft(previewDraft))
	get("/campaigns/{id}/when", draftScope, draft(showWhen))
	post("/campaigns/{id}/when", draftScope, draft(changeWhen))
	form("/campaigns/{id}/send-at", "/campaigns/{id}/simulation", draftScope, draft(takeStart))
	get("/campaigns/{id}/simulation", push.ScopeCampaignsRead, draft(simulateDraft))
	get("/campaigns/{id}/start", startScope, draft(showStart))
	post("/campaigns/{id}/start", startScope, draft(startCampaign))
	form("/campaigns/{id}/delete", "/campaigns/{id}", draftScope, deleteCampaign)
	get("/campaigns/{id}/live", push.ScopeCampaignsRead, streamCampaign)
	form("/campaigns/{id}/pause", "/campaigns/{id}", startScope, pauseCampaign)
	form("/campaigns/{id}/resume", "/campaigns/{id}", startScope, resumeCampaign)
	get("/campaigns/{id}/cancel", startScope, askCancel)
	post("/campaigns/{id}/cancel", startScope, cancelCampaign)
	get("/campaigns/{id}/recipients", push.ScopeCampaignsRead, showCampaignRecipients)
	get("/campaigns/{id}/export", push.ScopeCampaignsRead, exportCampaign)

	get("/why", push.ScopeQuota, showWhy)
	get("/why/book", "", backTo("/why"))
	long("/why/book", push.ScopeWrite, bookThen)

	get("/schedules", push.ScopeCampaignsRead, showSchedules)
	get("/schedules/new", push.ScopeCampaignsWrite, newSchedule)
	long("/schedules/new", push.ScopeCampaignsWrite, createSchedule)
	get("/schedules/{id}", push.ScopeCampaignsRead, showSchedule)
	long("/schedules/{id}", push.ScopeCampaignsWrite, changeSchedule)
	form("/schedules/{id}/delete", "/schedules/{id}", push.ScopeCampaignsWrite, deleteSchedule)

	get("/policy", push.ScopePolicyRead, showPolicy)
	long("/policy", push.ScopePolicyWrite, savePolicy)
	form("/policy/delete", "/policy", push.ScopePolicyWrite, deletePolicy)

	get("/settings", "", openSettings)
	get("/settings/keys", push.ScopeKeysRead, showKeys)
	post("/settings/keys", push.ScopeKeysWrite, createKey)
	form("/settings/keys/{id}/rotate", "/settings/keys", push.ScopeKeysWrite, rotateKey)
	form("/settings/keys/{id}/revoke", "/settings/keys", push.ScopeKeysWrite, revokeKey)
	get("/settings/webhooks", push.ScopeHooks, showWebhooks)
	post("/settings/webhooks", push.ScopeHooks, createWebhook)
	get("/settings/webhooks/{id}", push.ScopeHooks, showWebhook)
	post("/settings/webhooks/{id}", push.ScopeHooks, actOnWebhook)
	get("/settings/channels", push.ScopeRead, showChannels)
	long("/settings/channels", push.ScopeWrite, testSend)
	get("/settings/caps", push.ScopeRead, showCaps)
	get("/settings/users", push.ScopeUsersRead, showUsers)
	post("/settings/users", push.ScopeUsersWrite, createUser)
	get("/settings/users/{id}", push.ScopeUsersRead, showUser)
	post("/settings/users/{id}", push.ScopeUsersWrite, actOnUser)
	get("/settings/sessions", push.ScopeUsersRead, showMySessions)
	post("/settings/sessions", push.ScopeUsersRead, endMySessions)

	get("/proof", push.ScopeRecordsRead, showProof)
	get("/proof/log", push.ScopeRecordsRead, showAuditLog)
	get("/proof/log/export", push.ScopeRecordsRead, exportAuditLog)

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
