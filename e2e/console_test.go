package e2e

import (
	"strings"
	"testing"
)

// consoleConfig is the usual installation with a console.
const consoleConfig = usualConfig + "console: {enabled: true}\n"

// openConsole makes a user with a role, and opens a window in which that user has signed in.
func openConsole(t *testing.T, b *bundle, email, role string) *window {
	t.Helper()
	const password = "a horse, a battery and a staple"
	link := strings.TrimSpace(b.Tool("users", "create", "--tenant=acme", "--email="+email, "--role="+role))
	w := openWindow(t, b.api)
	w.visit(strings.TrimPrefix(link, b.api))
	w.fill("#f-password", password)
	w.fill("#f-again", password)
	w.click("button", "Set the password")
	w.shown("#f-email")
	w.fill("#f-email", email)
	w.fill("#f-password", password)
	w.click("button", "Sign in")
	w.shown("nav[aria-label=Pages]")
	return w
}
