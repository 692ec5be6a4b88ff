package e2e

import (
	"testing"
	"time"
)

// TestConsole_Screens opens every screen with something on it, in light and dark, wide and narrow, and by the keyboard. The stories of some take better pictures.
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

	w := b.signIn("admin")
	for _, screen := range []struct{ picture, path, says string }{
		{"", "/console/now", "Now"},
		{"", "/console/recipients/user-1", "user-1"},
		{"", "/console/recipients", "Recipients"},
		{"", "/console/why?recipient=user-1&at=" + at.Add(25*time.Second).Format("2006-01-02T15:04:05") + "&tz=utc", "was not, because the rule per-minute was full"},
		{"", "/console/campaigns", "Autumn sale"},
		{"", "/console/campaigns/" + campaign["id"].(string), "Autumn sale"},
		{"", "/console/calendar", "Calendar"},
		{"", "/console/pushes", "user-1"},
		{"", "/console/pushes/" + one, "scheduled"},
		{"", "/console/failures", "Failures"},
		{"", "/console/schedules", "Digest"},
		{"", "/console/schedules/" + schedule["id"].(string), "at 09:00, on Monday"},
		{"", "/console/schedules/new", "Cron expression"},
		{"", "/console/policy", "per-minute"},
		{"", "/console/settings/keys", "Make a key"},
		{"webhooks", "/console/settings/webhooks", "Make a webhook"},
		{"", "/console/settings/channels", "push"},
		{"", "/console/settings/caps", "Caps"},
		{"", "/console/settings/users", "admin@example.com"},
		{"", "/console/settings/sessions", "You are signed in here"},
		{"", "/console/proof", "What is promised"},
	} {
		t.Run(screen.path, func(t *testing.T) {
			w.t = t
			w.visit(screen.path)
			w.said(screen.says)
			w.screen(screen.picture)
			w.tabTo("main a, main button, main input, main select, main summary, main [tabindex='0']")
		})
	}
	w.t = t
	w.click("button", "Sign out")
	w.shown("#f-password")
	w.screen("sign-in")
}
