package e2e

import (
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/testenv"
)

// notPages are the paths that show no page of their own, with what they do instead.
var notPages = map[string]string{
	"/console": "leads to now", "/console/": "leads to now", "/console/settings": "leads to the first part of the settings",
	"/console/sign-in/oidc": "leads to the provider", "/console/sign-in/oidc/callback": "leads back from the provider",
	"/console/now/live": "is followed by its page", "/console/campaigns/{id}/live": "is followed by its page", "/console/pushes/bulk/{id}/live": "is followed by its page",
	"/console/recipients/{id}/free": "is asked by the time axis", "/console/recipients/{id}/submit": "leads to the axis", "/console/recipients/{id}/move": "leads to the axis",
	"/console/recipients/{id}/cancel": "leads to the axis",
	"/console/pushes/{id}/cancel":     "shows the push", "/console/pushes/{id}/move": "shows the push", "/console/pushes/{id}/retry": "shows the push",
	"/console/failures/retry":                  "shows the failures",
	"/console/campaigns/{id}/audience/columns": "leads to the audience", "/console/campaigns/{id}/audience/bad-lines": "leads to the audience", "/console/campaigns/{id}/send-at": "leads to the simulation",
	"/console/campaigns/{id}/delete": "leads to the campaign", "/console/campaigns/{id}/pause": "leads to the campaign", "/console/campaigns/{id}/resume": "leads to the campaign",
	"/console/why/book": "leads to the question", "/console/schedules/{id}/delete": "leads to the schedule", "/console/policy/delete": "leads to the policy", "/console/pushes/bulk/{id}/stop": "leads to the change",
	"/console/pauses/{id}/resume": "leads to the pauses", "/console/settings/keys/{id}/rotate": "leads to the keys", "/console/settings/keys/{id}/revoke": "leads to the keys", "/console/sign-out": "leads to now",
	"/console/campaigns/{id}/export": "is a file", "/console/proof/log/export": "is a file",
}

// pagePictures are the pictures that TestConsole_Pages takes, by the route of the page.
var pagePictures = map[string]string{
	"/console/why": "why", "/console/settings/channels/own/{name}": "settings-channel", "/console/settings/channels/new": "settings-channel-new", "/console/settings/caps": "settings-caps", "/console/settings/users/{id}": "settings-user", "/console/settings/sessions": "settings-sessions",
}

// TestConsole_Pages opens every page of the console with some content, in light and dark, wide and narrow, and by the
// keyboard. It fails for a new route until it opens its page. The stories show the actions of each page, and take most
// pictures.
func TestConsole_Pages(t *testing.T) {
	allOnly(t)
	t.Parallel()
	b := setupWith(t, options{config: consoleConfig + "webhooks: {allow_private_addresses: true}\n"})
	b.StartAPI()
	b.Start("worker")
	var (
		api = b.client()
		at  = tomorrowNoon()
	)
	submit := func(recipient string, at time.Time, message client.Message) client.Push {
		t.Helper()
		one, err := api.Pushes.Submit(t.Context(), "", client.NewPush{Recipient: recipient, Category: "marketing", Message: message, SendAt: at})
		testenv.Check(t, err)
		return one
	}
	one := submit("user-1", at, client.Message{"title": "Sale"})
	submit("user-1", at.Add(time.Hour), client.Message{"title": "Sale"})
	refused := object{"recipient": "user-1", "category": "marketing", "message": object{}, "send_at": at.Add(30 * time.Second).Format(time.RFC3339)}
	if status, answer := b.call("POST", "/v1/pushes", refused); status != http.StatusConflict {
		t.Fatalf("%d %v", status, answer)
	}
	failed := submit("user-2", time.Time{}, client.Message{"do": "404"})
	b.until("a push has failed", func() bool {
		now, err := api.Pushes.Get(t.Context(), failed.ID)
		testenv.Check(t, err)
		return now.Status == client.PushStatusFailed
	})
	_, schedule := b.call("POST", "/v1/schedules", object{"name": "Digest", "cron": "0 9 * * MON", "time_zone": "Europe/Berlin", "push": object{"recipient": "user-1", "message": object{"title": "Your week"}}})
	draft := b.planned(client.NewCampaign{Name: "Autumn sale", SendAt: at.Add(2 * time.Hour)}, "recipient,name\nuser-1,Anna\nuser-3,Carl\n")
	running := b.started(client.NewCampaign{Name: "Winter sale", SendAt: at.Add(3 * time.Hour)}, "recipient\nuser-4\nuser-5\n")
	hook, err := api.Webhooks.Create(t.Context(), client.NewWebhook{URL: newInbox(t).URL})
	testenv.Check(t, err)
	_, err = api.Webhooks.Test(t.Context(), hook.ID)
	testenv.Check(t, err)
	change, err := api.Pushes.CreateBulkChange(t.Context(), "", client.NewBulkChange{Action: client.NewBulkChangeActionMove, Shift: "1h", Filter: client.NewBulkFilter{Recipient: "user-1"}})
	testenv.Check(t, err)
	_, err = api.Channels.Put(t.Context(), "mail", client.ChannelSettings{"type": "email", "host": "smtp.example.com", "from": "Shop <shop@example.com>", "username": "shop", "password": "secret"})
	testenv.Check(t, err)
	link := strings.TrimSpace(b.Tool("users", "create", "--tenant", "acme", "--email", "bea@example.com", "--role", "viewer"))
	b.Tool("tenants", "cap", "acme", "--pending", "40", "--recipients-per-day", "200")
	guest := openWindow(t, b.api)
	w := b.signIn("admin")
	_, users := b.call("GET", "/v1/users", nil)
	user := users["users"].([]any)[0].(object)

	pages := []struct {
		window            *window
		route, path, says string // no path: the route itself
	}{
		{w, "/console/now", "", "Now"},
		{w, "/console/recipients/{id}", "/console/recipients/user-1", "user-1"},
		{w, "/console/recipients", "", "Recipients"},
		{w, "/console/why", "/console/why?recipient=user-1&at=" + at.Add(25*time.Second).Format("2006-01-02T15:04:05") + "&tz=utc", "because the rule per-minute was full"},
		{w, "/console/campaigns", "", "Autumn sale"},
		{w, "/console/campaigns/new", "", "New campaign"},
		{w, "/console/campaigns/{id}", "/console/campaigns/" + running.ID, "Winter sale"},
		{w, "/console/campaigns/{id}/message", "/console/campaigns/" + draft.ID + "/message", "Autumn sale"},
		{w, "/console/campaigns/{id}/audience", "/console/campaigns/" + draft.ID + "/audience", "The audience has 2 recipients"},
		{w, "/console/campaigns/{id}/preview", "/console/campaigns/" + draft.ID + "/preview", "user-3"},
		{w, "/console/campaigns/{id}/when", "/console/campaigns/" + draft.ID + "/when", "Autumn sale"},
		{w, "/console/campaigns/{id}/simulation", "/console/campaigns/" + draft.ID + "/simulation", "Nothing has been scheduled yet"},
		{w, "/console/campaigns/{id}/start", "/console/campaigns/" + draft.ID + "/start", "Autumn sale"},
		{w, "/console/campaigns/{id}/cancel", "/console/campaigns/" + running.ID + "/cancel", "Winter sale"},
		{w, "/console/campaigns/{id}/recipients", "/console/campaigns/" + running.ID + "/recipients", "user-4"},
		{w, "/console/calendar", "/console/calendar?at=" + at.Format(time.DateOnly), "Winter sale"},
		{w, "/console/calendar/campaigns/{id}", "/console/calendar/campaigns/" + draft.ID, "Move Autumn sale"},
		{w, "/console/pushes", "", "user-1"},
		{w, "/console/pushes/{id}", "/console/pushes/" + one.ID, "scheduled"},
		{w, "/console/pushes/new", "", "Send a message"},
		{w, "/console/pushes/bulk", "/console/pushes/bulk?recipient=user-1", "user-1"},
		{w, "/console/pushes/bulk/{id}", "/console/pushes/bulk/" + change.ID, "2"},
		{w, "/console/failures", "", "the provider answered 404"},
		{w, "/console/schedules", "", "Digest"},
		{w, "/console/schedules/{id}", "/console/schedules/" + schedule["id"].(string), "at 09:00, on Monday"},
		{w, "/console/schedules/new", "", "Cron expression"},
		{w, "/console/policy", "", "per-minute"},
		{w, "/console/pauses", "", "Nothing is stopped"},
		{w, "/console/settings/keys", "", "New API key"},
		{w, "/console/settings/webhooks", "", hook.URL},
		{w, "/console/settings/webhooks/{id}", "/console/settings/webhooks/" + hook.ID, "webhook.test"},
		{w, "/console/settings/channels", "", "push"},
		{w, "/console/settings/channels/new", "", "Choose what the channel sends"},
		{w, "/console/settings/channels/new", "/console/settings/channels/new?type=sms", "Account SID"},
		{w, "/console/settings/channels/own/{name}", "/console/settings/channels/own/mail", "E-mail (SMTP)"},
		{w, "/console/settings/caps", "", "of 40 ("},
		{w, "/console/settings/users", "", "admin@example.com"},
		{w, "/console/settings/users/{id}", "/console/settings/users/" + user["id"].(string), user["email"].(string)},
		{w, "/console/settings/sessions", "", "These are your active sessions"},
		{w, "/console/proof", "", "Guarantees and their checks"},
		{w, "/console/proof/log", "", "created a user"},
		{guest, "/console/sign-in", "", "Work e-mail"},
		{guest, "/console/set-password/{token}", link[strings.Index(link, "/console/"):], "bea@example.com"},
	}
	opened := maps.Clone(notPages)
	for _, page := range pages {
		if page.path == "" {
			page.path = page.route
		}
		opened[page.route] = "a page"
		t.Run(strings.TrimPrefix(page.route, "/console/"), func(t *testing.T) {
			w := page.window
			w.t = t
			w.visit(page.path)
			w.said(page.says)
			w.screen(pagePictures[page.route])
			w.tabTo("main a, main button, main input, main select, main summary, main [tabindex='0']")
		})
		page.window.t = t
	}

	list, err := os.ReadFile("../internal/console/testdata/pages.txt")
	testenv.Check(t, err)
	routes := strings.Fields(string(list))
	for _, route := range routes {
		if opened[route] == "" {
			t.Errorf("%s is not opened", route)
		}
	}
	for route := range opened {
		if !slices.Contains(routes, route) {
			t.Errorf("%s is no route", route)
		}
	}
	stop, err := api.Pauses.Create(t.Context(), client.NewPause{Scope: client.NewPauseScopeChannel, Name: "push", Reason: "Wrong text"})
	testenv.Check(t, err)
	w.visit("/console/pushes/" + one.ID)
	w.shown("aside", "Sending is stopped: the channel push. Resume sending")
	w.said("It waits, because sending is stopped")
	w.screen("")
	w.visit("/console/pauses")
	w.until(`document.querySelector("#f-scope").checkVisibility() && !document.querySelector("#f-channel").checkVisibility()`)
	w.until(`document.querySelector("#f-scope").value = "channel", document.querySelector("#f-channel").checkVisibility() && !document.querySelector("#f-category").checkVisibility()`)
	w.screen("pauses")
	w.click("button", "Resume sending")
	w.said("Nothing is stopped")
	if _, err := api.Pauses.Get(t.Context(), stop.ID); err == nil {
		t.Error("the pause is in force")
	}
	w.visit("/console/campaigns/" + draft.ID)
	w.said("same time for everyone")
	w.screen("campaign-draft")
	w.click("button", "Sign out")
	w.shown("#f-password")
	w.screen("sign-in")
}
