package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp/kb"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/testenv"
)

// TestConsole_Settings is what an admin does in the settings: makes a key, looks at the caps, makes a user, whose link a colleague
// uses, and signs that colleague out; and finds all of it in the log, with who did it.
func TestConsole_Settings(t *testing.T) {
	t.Parallel()
	b := setupWith(t, options{config: consoleConfig})
	b.StartAPI()
	_, err := b.client().Submit(t.Context(), "", client.NewPush{Recipient: "anna", Channel: "log", Message: client.Message{"title": "Hello"}, SendAt: time.Now().Add(26 * time.Hour)})
	testenv.Check(t, err)
	w := b.signIn("admin")

	w.visit("/console/settings/keys")
	w.tabTo("#f-name")
	w.press("back office", kb.Tab, " ")
	w.tabTo("main form:last-of-type p button")
	w.press(kb.Enter)
	w.said("This is the new API key")
	w.screen("settings-keys")

	b.Tool("tenants", "cap", "acme", "--pending", "200")
	w.visit("/console/settings/caps")
	w.said("1 of 200")
	w.screen("settings-caps")

	w.visit("/console/settings/users")
	w.tabTo("#f-email")
	w.press("bea@example.com", kb.Tab, "Bea")
	w.tabTo("main form:last-of-type p button")
	w.press(kb.Enter)
	w.said("With this link Bea sets a password")
	w.screen("settings-users")
	link := w.text("pre.secret")
	bea := openWindow(t, b.api)
	bea.visit(link[strings.Index(link, "/console/"):])
	bea.fill("#f-password", "seven swans on the lake")
	bea.fill("#f-again", "seven swans on the lake")
	bea.click("button", "Set the password")
	bea.shown("#f-email")
	bea.fill("#f-email", "bea@example.com")
	bea.fill("#f-password", "seven swans on the lake")
	bea.click("button", "Sign in")
	bea.until("location.pathname.startsWith('/console/now')")
	bea.expect("403")
	bea.visit("/console/settings/webhooks", 403)

	w.click("td a", "bea@example.com")
	w.shown("h1", "Bea")
	w.screen("")
	w.click("button", "Sign out everywhere")
	w.said("Signed out in 1 browser")
	bea.visit("/console/settings/sessions")
	bea.until("location.pathname.startsWith('/console/sign-in')")
	w.visit("/console/settings/sessions")
	w.said("(this one)")
	w.screen("")
	w.visit("/console/settings/webhooks")
	w.screen("")

	w.visit("/console/proof/log?actor_type=user")
	w.said("user admin@example.com")
	w.said("made a user")
	w.screen("proof-log")
	w.visit("/console/proof")
	w.screen("proof")
}
