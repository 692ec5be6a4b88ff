package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"
)

// consoleConfig is the usual configuration with the console.
const consoleConfig = usualConfig + `
console: {enabled: true}
`

// signedIn opens a window in which a new user has set a password by the link that the tool printed, and has signed in.
func (b *bundle) signedIn(role string) *window {
	b.t.Helper()
	link := strings.TrimSpace(b.Tool("users", "create", "--tenant", "acme", "--email", role+"@example.com", "--role", role))
	_, path, found := strings.Cut(link, "/console/")
	if !found {
		b.t.Fatalf("the link is %q", link)
	}
	w := openWindow(b.t, b.api)
	w.visit("/console/" + path)
	w.fill("#f-password", "correct horse battery staple")
	w.fill("#f-again", "correct horse battery staple")
	w.press(kb.Enter)
	w.shown("#f-email")
	w.fill("#f-email", role+"@example.com")
	w.fill("#f-password", "correct horse battery staple")
	w.press(kb.Enter)
	w.said("Sign out")
	return w
}

// TestConsole_Screens opens every screen with something on it, in light and dark, wide and narrow, and by the keyboard.
func TestConsole_Screens(t *testing.T) {
	t.Parallel()
	b := setupWith(t, options{config: consoleConfig})
	b.StartAPI()
	b.Start("worker")
	at := time.Now().Add(2 * time.Hour).UTC().Truncate(time.Second)
	submit := func(recipient string, at time.Time) string {
		_, answer := b.call("POST", "/v1/pushes", object{"recipient": recipient, "message": object{"title": "Sale"}, "category": "marketing", "send_at": at.Format(time.RFC3339)})
		id, _ := answer["id"].(string)
		return id
	}
	one := submit("user-1", at)
	submit("user-1", at.Add(time.Hour))
	submit("user-1", at.Add(30*time.Second)) // refused
	_, schedule := b.call("POST", "/v1/schedules", object{"name": "Digest", "cron": "0 9 * * MON", "time_zone": "Europe/Berlin", "push": object{"recipient": "user-1", "message": object{"title": "Your week"}}})
	_, campaign := b.call("POST", "/v1/campaigns", object{"name": "Autumn sale", "send_at": at.Format(time.RFC3339), "message": object{"title": "Hi {{ first_name }}"}})

	w := b.signedIn("admin")
	for _, screen := range []struct{ name, path, says string }{
		{"now", "/console/now", "Now"},
		{"recipient", "/console/recipients/user-1", "user-1"},
		{"recipients", "/console/recipients", "Recipients"},
		{"why", "/console/why?recipient=user-1&at=" + at.Add(25*time.Second).Format("2006-01-02T15:04:05") + "&tz=utc", "was not, because the rule per-minute was full"},
		{"campaigns", "/console/campaigns", "Autumn sale"},
		{"campaign", "/console/campaigns/" + campaign["id"].(string), "Autumn sale"},
		{"calendar", "/console/calendar", "Calendar"},
		{"pushes", "/console/pushes", "user-1"},
		{"push", "/console/pushes/" + one, "scheduled"},
		{"schedules", "/console/schedules", "Digest"},
		{"schedule", "/console/schedules/" + schedule["id"].(string), "at 09:00, on Monday"},
		{"schedule-new", "/console/schedules/new", "Cron expression"},
		{"policy", "/console/policy", "per-minute"},
		{"keys", "/console/settings/keys", "Make a key"},
		{"webhooks", "/console/settings/webhooks", "Make a webhook"},
		{"channels", "/console/settings/channels", "push"},
		{"caps", "/console/settings/caps", "Caps"},
		{"users", "/console/settings/users", "admin@example.com"},
		{"sessions", "/console/settings/sessions", "Sessions"},
		{"proof", "/console/proof", "What is promised"},
	} {
		t.Run(screen.name, func(t *testing.T) {
			w.t = t
			w.visit(screen.path)
			w.said(screen.says)
			w.screen(screen.name)
			w.tabTo("main a, main button, main input, main select, main summary, main [tabindex='0']")
		})
	}
	w.t = t
	w.click("button", "Sign out")
	w.shown("#f-password")
	w.screen("sign-in")
}
