package console

import (
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store/accounts"
	"github.com/sendquota/sendquota/internal/user"
)

// newUser makes a user of the console, who is signed in with a session of this number.
func (b *bundle) newUser(email string, role user.Role, n byte) (user.User, user.Session) {
	b.t.Helper()
	_, link := user.NewLink()
	u, err := b.store.CreateUser(b.t.Context(), user.New{Tenant: b.tenant, Email: email, Role: role, Link: link})
	if err != nil {
		b.t.Fatal(err)
	}
	return u, b.newSession(u, n)
}

func (b *bundle) newSession(u user.User, n byte) user.Session {
	b.t.Helper()
	s, err := b.store.BeginSession(b.t.Context(), b.tenant, user.NewSession{Hash: sha256.Sum256([]byte(rand.Text())), User: u.ID, ExpiresAt: time.Now().Add(time.Hour), Address: fmt.Sprint("192.0.2.", n), UserAgent: fmt.Sprint("Firefox ", n)})
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

// TestUsers_Story: a user is made, and the link shown this once; then changed, disabled, enabled, given another link and deleted.
// No link is in a later page, in the list of calls or in the log.
func TestUsers_Story(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ada, session := b.newUser("ada@example.com", user.Admin, 1)
	b.who.Caller, b.who.Session = ada.Caller(), session.ID
	b.post("/console/settings/users", "email", "no address", "name", "Bea", "role", "king").has(t, 422, "email", "role", `value="Bea"`)
	made := b.post("/console/settings/users", "email", "bea@example.com", "name", "Bea", "role", "editor")
	made.has(t, 200, "It is shown only once", "bea@example.com", "has no password yet")
	if strings.Contains(made.Body, `value="bea@example.com"`) {
		t.Error("the form has still what was just done")
	}
	link := regexp.MustCompile(`class="secret">([^<]+)<`).FindStringSubmatch(made.Body)
	if link == nil || !strings.HasPrefix(link[1], "https://console.example.com"+user.LinkPath) || strings.Count(made.Body, link[1]) != 1 {
		t.Fatalf("the link %q is not shown once", link)
	}
	links := []string{link[1]}
	b.post("/console/settings/users", "email", "bea@example.com", "role", "viewer").has(t, 409, "another user of the team has this e-mail address", `id="fault-email"`, `value="bea@example.com"`)

	path := regexp.MustCompile(`(/console/settings/users/[0-9a-f-]+)">bea@`).FindStringSubmatch(b.get("/console/settings/users").Body)[1]
	b.get(path).has(t, 200, "<h1>Bea</h1>", `value="editor" checked`, "works until", "No active sessions")
	b.follow(b.post(path, "do", "change", "name", "Bea B", "role", "sender")).has(t, 200, "User saved", "<h1>Bea B</h1>", `value="sender" checked`)
	b.post(path, "do", "change", "name", "Bea B", "was_name", "Bea B", "role", "editor", "was_role", "editor") // a page of before: nothing is changed on it
	b.get(path).has(t, 200, `value="sender" checked`)
	b.post(path, "do", "change", "name", "Bea C", "role", "king").has(t, 422, "role", `value="Bea C"`)
	b.follow(b.post(path, "do", "disable")).has(t, 200, "User disabled", `status-disabled`, "Enable user")
	b.post(path, "do", "link").has(t, 409, "enable the user first")
	b.follow(b.post(path, "do", "enable")).has(t, 200, "User enabled")
	again := b.post(path, "do", "link")
	again.has(t, 200, "It is shown only once", "replaces any earlier link")
	links = append(links, regexp.MustCompile(`class="secret">([^<]+)<`).FindStringSubmatch(again.Body)[1])
	for _, link := range links {
		if log := b.get("/console/proof/log"); strings.Contains(b.log.String()+b.get(path).Body+log.Body, link[len(link)-20:]) {
			t.Error("a link is shown again")
		}
	}
	b.post("/console/settings/users/"+ada.ID.String(), "do", "change", "role", "viewer").has(t, 409, "last active admin")
	b.follow(b.post(path, "do", "delete")).has(t, 200, "User deleted")
	b.get(path).has(t, 404)
	b.get("/console/proof/log").has(t, 200, "user ada@example.com", "deleted a user", "created a link to set a password")
}

// TestUsers_Roles: who may not change users sees them, and of sessions only their own.
func TestUsers_Roles(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ada, _ := b.newUser("ada@example.com", user.Admin, 1)
	eve, session := b.newUser("eve@example.com", user.Viewer, 2)
	b.who.Caller, b.who.Session, b.who.Role = eve.Caller(), session.ID, "viewer"
	list := b.get("/console/settings/users")
	list.has(t, 200, "ada@example.com", "(you)")
	other := b.get("/console/settings/users/" + ada.ID.String())
	other.has(t, 200, "ada@example.com")
	if strings.Contains(list.Body, "Invite teammate") || strings.Contains(other.Body, "Edit user") || strings.Contains(other.Body, "Firefox 1") {
		t.Errorf("a viewer is offered what only admins may do:\n%s\n%s", list.text(), other.text())
	}
	b.get("/console/settings/users/"+eve.ID.String()).has(t, 200, "Firefox 2", "(this one)")
	b.post("/console/settings/users", "email", "x@example.com", "role", "admin").has(t, 403, "cannot do this")
	b.post("/console/settings/users/"+eve.ID.String(), "do", "change", "role", "admin").has(t, 403, "cannot do this")
	b.who.Caller.Scopes = append(user.Editor.Scopes(), push.ScopeUsersWrite)
	if made := b.get("/console/settings/users"); strings.Contains(made.Body, `value="sender"`) || strings.Contains(made.Body, `value="admin"`) {
		t.Error("roles are offered with scopes that the giver lacks")
	}
	b.who.Caller.Scopes = []string{push.ScopeRead}
	b.get("/console/settings/users").has(t, 403, "cannot do this")
	b.get("/console/settings/sessions").has(t, 403, "cannot do this")
}

// TestSessions: a user sees where it is signed in, and signs out in one browser, and in all. An admin does so for others.
func TestSessions(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ada, session := b.newUser("ada@example.com", user.Admin, 1)
	eve, _ := b.newUser("eve@example.com", user.Viewer, 2)
	other, last := b.newSession(ada, 3), b.newSession(eve, 4)
	b.who.Caller, b.who.Session = ada.Caller(), session.ID
	mine := b.get("/console/settings/sessions")
	mine.has(t, 200, "Firefox 1 <strong>(this one)</strong>", "Firefox 3", "192.0.2.3")
	if strings.Contains(mine.Body, "Firefox 2") {
		t.Error("the sessions of another user are shown as one's own")
	}
	left := b.follow(b.post("/console/settings/sessions", "do", "end", "session", other.ID.String()))
	left.has(t, 200, "That browser is signed out", "Firefox 1")
	if strings.Contains(left.Body, "Firefox 3") {
		t.Error("the session has not ended")
	}
	b.post("/console/settings/sessions", "do", "end", "session", last.ID.String()).has(t, 404)

	path := "/console/settings/users/" + eve.ID.String()
	b.get(path).has(t, 200, "Firefox 2", "Firefox 4")
	b.follow(b.post(path, "do", "end", "session", last.ID.String())).has(t, 200, "That browser is signed out", "Firefox 2")
	b.follow(b.post(path, "do", "end-all")).has(t, 200, "Signed out in 1 browser.", "No active sessions")
	b.follow(b.post("/console/settings/sessions", "do", "end-all")).has(t, 200, "Signed out in 1 browser.")
}

// TestUsers_CapsOfTenant: what a user submits in the console stays under the caps that the operator has set for the tenant.
func TestUsers_CapsOfTenant(t *testing.T) {
	t.Parallel()
	b := setupSignIn(t, SignInConfig{PublicURL: "http://localhost"})
	b.person("ada@example.com", user.Admin, goodPassword)
	b.submit("anna", time.Hour)
	one := 1
	if _, err := b.store.CapTenant(t.Context(), "acme", accounts.CapChange{PendingPushes: &accounts.NewCap{Value: &one}}); err != nil {
		t.Fatal(err)
	}
	b.enter("ada@example.com", goodPassword)
	b.get("/console/settings/caps").has(t, 200, "1 of 1: nothing more is accepted")
	b.post("/console/settings/channels", "channel", "sms", "recipient", "me", "once", "1").has(t, 409, "pending_pushes")
}
