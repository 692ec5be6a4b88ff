package e2e

import (
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/sendquota/sendquota/internal/testenv"
)

// TestConsole_SetPassword: a colleague is made, opens the link, is told what is wrong with a password, sets one, and signs in. The link
// works once.
func TestConsole_SetPassword(t *testing.T) {
	t.Parallel()
	b := setupWith(t, options{config: consoleConfig})
	b.StartAPI()
	w := b.signIn("admin")

	w.visit("/console/settings/users?tz=utc")
	w.tabTo("#f-email")
	w.press("bea@example.com", kb.Tab, "Bea")
	w.tabTo("main form:last-of-type p button")
	w.press(kb.Enter)
	w.said("With this link Bea sets a password")
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
	bea.shown("#fault-again", "is not the same password")
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
	bea.shown("[role=alert]", "This link does not work any more")
	bea.screen("")
}

// TestConsole_User: an admin gives a colleague another role, ends their sessions, keeps them out and lets them in again. The last admin
// stays one.
func TestConsole_User(t *testing.T) {
	t.Parallel()
	b := setupWith(t, options{config: consoleConfig})
	b.StartAPI()
	w, colleague := b.signIn("admin"), b.signIn("viewer")

	w.visit("/console/settings/users?tz=utc")
	w.tabTo("td a[href^='/console/settings/users/']") // the first, who was made first
	w.click("td a", "viewer@example.com")
	w.shown("h1", "viewer@example.com")
	w.said("can sign in")
	w.fill("#f-name", "Bea")
	w.tabTo("[name=role]:checked")
	w.press(kb.ArrowDown, kb.ArrowDown) // sender
	w.tabTo("main button[value=change]")
	w.press(kb.Enter)
	w.said("The user is changed")
	w.shown("h1", "Bea")
	w.screen("settings-user")
	colleague.visit("/console/now")
	colleague.shown(".who .name", "Bea sender")

	w.click("button", "Make a link to set a password")
	w.said("With this link the user sets a password.")
	link := w.text("pre.secret")
	w.screen("")
	w.click("nav[aria-label=Settings] a", "Users")
	w.click("td a", "viewer@example.com")
	w.said("works until")
	w.never(link)

	w.click("button", "Sign out everywhere")
	w.said("Signed out in 1 browser.")
	colleague.visit("/console/settings/sessions")
	colleague.until("location.pathname === '/console/sign-in'")
	w.click("summary", "Disable")
	w.click("button", "Disable the user")
	w.said("The user is signed out everywhere, and can not sign in.")
	colleague.expect("status of 401")
	colleague.fill("#f-email", "viewer@example.com")
	colleague.fill("#f-password", goodPassword)
	colleague.press(kb.Enter)
	colleague.shown("[role=alert]", "You are not signed in")
	w.click("button", "Enable the user again")
	w.said("The user can sign in again.")
	colleague.enter("viewer@example.com")
	colleague.until("location.pathname === '/console/settings/sessions'") // where they wanted to go
	w.click("summary", "Delete")
	w.click("button", "Delete the user")
	w.said("The user is deleted, and signed out everywhere.")
	colleague.visit("/console/now")
	colleague.until("location.pathname === '/console/sign-in'")

	w.expect("status of 409") // nobody else could make users
	w.click("td a", "admin@example.com")
	w.click("[name=role][value=viewer]")
	w.click("button", "Save")
	w.shown("[role=alert]", "last admin")
	w.screen("")
	if n := testenv.Query[int](t, b.Database, `SELECT count(*) FROM users WHERE role = 'admin'`); n != 1 {
		t.Errorf("%d admins are left", n)
	}
}

// TestConsole_Sessions: somebody who is signed in at two places sees both, and ends the other one, and then all.
func TestConsole_Sessions(t *testing.T) {
	t.Parallel()
	b := setupWith(t, options{config: consoleConfig})
	b.StartAPI()
	w := b.signIn("viewer")
	other := openWindow(t, b.api)
	other.visit("/console/sign-in")
	other.enter("viewer@example.com")

	w.visit("/console/settings?tz=utc")
	w.click("nav[aria-label=Settings] a", "My sessions")
	rows := `document.querySelectorAll("[aria-label=Sessions] tbody tr")`
	w.until(rows + `.length === 2 && [...` + rows + `].filter(r => r.innerText.includes("(this one)")).length === 1`)
	w.screen("settings-sessions")
	w.tabTo("[aria-label=Sessions] tr:not(:has(strong)) button")
	w.press(kb.Enter)
	w.said("That browser is signed out.")
	w.until(rows + `.length === 1`)
	other.visit("/console/pushes?status=sent")
	other.until("location.pathname === '/console/sign-in'")
	w.visit("/console/settings/sessions")
	w.said("You are signed in here")

	w.click("button", "Sign out everywhere")
	w.until("location.pathname === '/console/sign-in'")
	w.said("Sign in")
}
