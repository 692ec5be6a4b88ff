package e2e

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// TestConsole_SetPassword creates a colleague, who opens the link, sees what is wrong with a password, sets one, and
// signs in. The link works once.
func TestConsole_SetPassword(t *testing.T) {
	allOnly(t)
	t.Parallel()
	b := setupWith(t, options{config: consoleConfig})
	b.StartAPI()
	w := b.signIn("admin")

	w.visit("/console/settings/users?tz=utc")
	w.tabTo("#f-email")
	w.press("bea@example.com", kb.Tab, "Bea")
	w.tabTo("main form:last-of-type p button")
	w.press(kb.Enter)
	w.said("This link lets Bea set a password")
	w.screen("settings-users")
	link := w.text("pre.secret")
	w.visit("/console/settings/users?tz=utc")
	w.shown("td", "has no password yet")
	w.never(link)

	bea := openWindow(t, b.api)
	path := link[strings.Index(link, "/console/"):]
	bea.visit(path)
	bea.said("For bea@example.com.")
	bea.screen("set-password")
	bea.expect("status of 422") // they are not the same
	bea.tabTo("#f-password")
	bea.press(goodPassword, kb.Tab, "seven swans on the lake", kb.Enter)
	bea.shown("#fault-again", "the passwords do not match")
	bea.screen("")
	bea.fill("#f-password", goodPassword)
	bea.fill("#f-again", goodPassword)
	bea.press(kb.Enter)
	bea.said("Your password is set. Sign in with it.")
	bea.expect("status of 401")
	bea.fill("#f-email", "bea@example.com")
	bea.fill("#f-password", "seven swans on the lake")
	bea.press(kb.Enter)
	bea.shown("[role=alert]", "The e-mail address or the password is wrong")
	bea.screen("")
	bea.fill("#f-password", goodPassword)
	bea.press(kb.Enter)
	bea.until("location.pathname === '/console/now'")
	bea.expect("status of 404")
	bea.visit(path, 404)
	bea.shown("[role=alert]", "This link no longer works")
	bea.screen("")
}
