package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/testenv"
)

// TestConsole_Viewer opens every page as a viewer: without buttons that change anything, and without addresses. A
// forged change is refused, on a page that names the missing right.
func TestConsole_Viewer(t *testing.T) {
	allOnly(t)
	t.Parallel()
	b := setupWith(t, options{config: consoleConfig})
	b.StartAPI()
	b.Start("worker")
	noon := tomorrowNoon()
	one, err := b.client().Pushes.Submit(t.Context(), "", client.NewPush{Recipient: "anna", To: "+4915112345678", Message: client.Message{"title": "Hello"}, SendAt: noon})
	testenv.Check(t, err)
	campaign := b.planned(client.NewCampaign{Name: "Autumn sale", SendAt: noon}, "recipient\nanna\n")
	running := b.started(client.NewCampaign{Name: "Winter sale", SendAt: noon.Add(time.Hour)}, "recipient\nbert\n")
	failed, err := b.client().Pushes.Submit(t.Context(), "", client.NewPush{Recipient: "carl", Message: client.Message{"do": "404"}})
	testenv.Check(t, err)
	b.until("a push has failed", func() bool {
		failed, err = b.client().Pushes.Get(t.Context(), failed.ID)
		testenv.Check(t, err)
		return failed.Status == client.PushStatusFailed
	})
	_, schedule := b.call("POST", "/v1/schedules", object{"name": "Digest", "cron": "0 9 * * MON", "time_zone": "Europe/Berlin", "push": object{"recipient": "anna", "message": object{"title": "Your week"}}})
	w := b.signIn("viewer")

	for _, page := range []string{
		"/now", "/recipients", "/recipients/anna", "/why?recipient=anna&at=" + noon.Format("2006-01-02T15:04:05") + "&tz=utc", "/campaigns", "/campaigns/" + campaign.ID, "/campaigns/" + running.ID,
		"/campaigns/" + running.ID + "/recipients", "/calendar?at=" + noon.Format(time.DateOnly), "/pushes", "/pushes/" + one.ID, "/pushes/" + failed.ID, "/failures", "/schedules", "/schedules/" + schedule["id"].(string), "/policy",
		"/settings/keys", "/settings/channels", "/settings/caps", "/settings/users", "/proof", "/proof/log",
	} {
		w.visit("/console" + page)
		w.shown("h1")
		if buttons := eval[[]string](w, `[...document.querySelectorAll("main form[method=post] button, main :is("
			+ ["/new", "/start", "/when", "/audience", "/bulk", "/cancel", "/retry", "cancel=", "move=", "/calendar/campaigns/"].map(p => "a[href*='" + p + "']").join() + ")")].map(e => e.outerHTML)`); len(buttons) > 0 {
			t.Errorf("%s offers %s", page, strings.Join(buttons, "\n"))
		}
	}
	w.visit("/console/pushes/" + one.ID)
	w.never("+4915112345678")
	w.said("+4•••78")

	w.expect("status of 403")
	for page, scope := range map[string]string{
		"/settings/webhooks": "webhooks:manage", "/pushes/new": "pushes:write", "/campaigns/new": "campaigns:draft", "/campaigns/" + campaign.ID + "/start": "campaigns:write",
		"/schedules/new": "campaigns:write",
	} {
		w.visit("/console"+page, 403)
		w.shown("[role=alert]", "Your role, viewer, cannot do this; "+holders(scope))
	}
	w.screen("")
	for path, scope := range map[string]string{
		"/pushes/" + one.ID + "/cancel": "pushes:write", "/policy": "policy:write", "/settings/keys": "keys:write", "/settings/users": "users:write", "/campaigns/" + campaign.ID + "/delete": "campaigns:draft",
	} {
		answer := eval[string](w, fmt.Sprintf(`fetch("/console%s", {method: "POST", body: new URLSearchParams({})}).then(async r => r.status + " " + await r.text())`, path))
		if !strings.HasPrefix(answer, "403 ") || !strings.Contains(answer, "Your role, viewer, cannot do this; "+holders(scope)) {
			t.Errorf("%s: %.200s", path, answer)
		}
	}
	if left, err := b.client().Pushes.Get(t.Context(), one.ID); err != nil || left.Status != client.PushStatusScheduled {
		t.Errorf("%+v, %v", left, err)
	}
}

// holders are the roles that have a scope, as a page says them.
func holders(scope string) string {
	switch scope {
	case "campaigns:draft", "policy:write":
		return "editors, senders and admins can."
	case "pushes:write", "campaigns:write":
		return "senders and admins can."
	}
	return "admins can."
}
