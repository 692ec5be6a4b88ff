package e2e

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/sendquota/sendquota/internal/testenv/oidcprovider"
)

// TestConsole_OIDC signs a user in with a company account, on the requested page and with the role of the user's
// groups. A user in none of these groups gets an explanation.
func TestConsole_OIDC(t *testing.T) {
	allOnly(t)
	t.Parallel()
	b := setupWith(t, options{config: consoleConfig})
	p := oidcprovider.New(t)
	p.Claims = map[string]any{"sub": "ada", "email": "ada@example.com", "email_verified": true, "name": "Ada Lovelace", "groups": []string{"crm"}}
	b.configure("console: {enabled: true}", fmt.Sprintf("console: {enabled: true, public_url: %q, oidc: {issuer: %q, client_id: sq, client_secret: hush, tenant: acme, roles: {crm: sender}}}", b.api, p.URL))
	b.StartAPI()
	w := openWindow(t, b.api)
	w.allow(p.URL)

	w.visit("/console/pushes?status=sent")
	w.shown("a.button", "Sign in with your company's account")
	w.screen("sign-in-oidc")
	w.tabTo("main a.button")
	w.press(kb.Enter)
	w.until("location.pathname + location.search === '/console/pushes?status=sent' && document.readyState === 'complete'")
	w.shown(".who .name", "Ada Lovelace sender")
	w.click("button", "Sign out")
	w.said("You are signed out.")

	p.Claims["sub"], p.Claims["email"], p.Claims["groups"] = "eve", "eve@example.com", []string{"others"}
	w.expect("status of 403")
	w.click("a.button", "Sign in with your company's account")
	w.shown("[role=alert]", "None of your groups can sign in here")
	w.screen("")
	w.visit("/console/pushes")
	w.until("location.pathname === '/console/sign-in'")
}
