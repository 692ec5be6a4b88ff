package e2e

import (
	"strings"
	"time"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/testenv"
)

// consoleConfig is the usual one, with a console.
const consoleConfig = usualConfig + `
console: {enabled: true}
`

// goodPassword is the one of all users of tests.
const goodPassword = "six geese walk over the bridge"

// signIn makes a user with a role, and signs them in to the console as people do: with the link that the tool prints.
func (b *bundle) signIn(role string) *window {
	b.t.Helper()
	email := role + "@example.com"
	link := strings.TrimSpace(b.Tool("users", "create", "--tenant", "acme", "--email", email, "--role", role))
	w := openWindow(b.t, b.api)
	w.setPassword(link)
	w.enter(email)
	return w
}

// setPassword opens a link to set a password, and does so.
func (w *window) setPassword(link string) {
	w.t.Helper()
	w.visit(link[strings.Index(link, "/console/"):])
	w.fill("#f-password", goodPassword)
	w.fill("#f-again", goodPassword)
	w.click("button", "Save password")
	w.shown("#f-email")
}

// enter signs a user in with the form that is shown.
func (w *window) enter(email string) {
	w.t.Helper()
	w.fill("#f-email", email)
	w.fill("#f-password", goodPassword)
	w.click("button", "Sign in")
	w.until("!location.pathname.startsWith('/console/sign-in') && document.readyState === 'complete'")
}

// client calls the API as programs do.
func (b *bundle) client() *client.Client {
	b.t.Helper()
	api, err := client.New(b.api, b.Key, client.Config{HTTP: httpClient})
	testenv.Check(b.t, err)
	return api
}

// stamp returns a time in UTC in the console's format.
func stamp(at time.Time) string { return at.UTC().Format("2006-01-02 15:04:05") }

// tomorrowNoon is a time that is far enough ahead for all that is done with it meanwhile.
func tomorrowNoon() time.Time { return time.Now().UTC().Truncate(24 * time.Hour).Add(36 * time.Hour) }
