package console

import (
	"crypto/rand"
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/user"
)

// noticeCookie carries what a form did to the next page.
const noticeCookie = "sendquota-notice"

// TestFlash_Calls: the page that a form leads to shows the form's calls beside its own, once.
func TestFlash_Calls(t *testing.T) {
	t.Parallel()
	b := setup(t)
	one := b.submit("user-1", time.Hour)
	to := one.SendAt.Add(time.Hour).UTC()
	moved := b.follow(b.post("/console/pushes/"+one.ID+"/move", "move_to", to.Format("2006-01-02T15:04:05.999999999"), "do", "move"))
	_, drawer, _ := strings.Cut(moved.Body, "As API call")
	did, own, _ := strings.Cut(drawer, "<h2>This page</h2>")
	for text, in := range map[string]string{
		"<h2>What you just did</h2>\n<pre tabindex=\"0\">curl -sS -X PATCH 'https://api.example.com/v1/pushes/" + one.ID + "'": did,
		`-d '{"send_at":"` + to.Format(time.RFC3339Nano) + `"}'`:                                                               did,
		"curl -sS 'https://api.example.com/v1/pushes/" + one.ID + "'":                                                          own,
	} {
		if !strings.Contains(in, text) {
			t.Errorf("the drawer lacks %q:\n%s", text, drawer)
		}
	}
	if strings.Contains(did, "curl -sS 'https") {
		t.Errorf("a call that only reads is in the flash:\n%s", did)
	}
	again := b.get("/console/pushes/" + one.ID)
	again.has(t, 200, "As API call")
	if strings.Contains(again.Body, "What you just did") || strings.Contains(again.Body, "This page</h2>") {
		t.Error("the calls are shown twice")
	}
	failed := b.post("/console/pushes/"+one.ID+"/move", "move_to", "2000-01-01T00:00:00", "do", "move")
	if failed.has(t, 422); failed.Header.Get("Set-Cookie") != "" {
		t.Errorf("what failed is in the flash: %v", failed.Header)
	}
}

// TestFlash_Bounded: however long the calls of a form are, browsers take the cookie.
func TestFlash_Bounded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	noise := make([]byte, 6000)
	_, _ = rand.Read(noise)
	text := base64.StdEncoding.EncodeToString(noise)[:5000]
	answer := b.post("/console/pushes/new", "recipient", "user-1", "channel", "push", "message.title", text, "once", "one-key", "do", "submit")
	if cookie := answer.Header.Get("Set-Cookie"); len(cookie) > 4096 {
		t.Errorf("the cookie has %d characters", len(cookie))
	}
	page := b.follow(answer)
	page.has(t, 200, "Scheduled for", "curl -sS -X POST 'https://api.example.com/v1/pushes'", "Idempotency-Key: one-key", "-d '@body.json'")
}

// TestFlash_Secrets: a body with a secret stays out of the cookie.
func TestFlash_Secrets(t *testing.T) {
	t.Parallel()
	b := setup(t)
	page := b.follow(b.post("/console/pushes/new", "recipient", "user-1", "channel", "push", "message", `{"password":"hunter2"}`, "do", "submit"))
	if page.has(t, 200, "Scheduled for", "-d '@body.json'"); strings.Contains(page.Body, "hunter2") {
		t.Error("the page shows the secret")
	}
}

// TestFlash_Broken: what is no cookie of ours is shown nowhere.
func TestFlash_Broken(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, value := range []string{"Zm9v", "%%%", "q1bKyy_JTFW"} {
		b.cookies[noticeCookie] = value
		if page := b.get("/console/pushes"); page.Status != 200 || strings.Contains(page.Body, `class="notice"`) {
			t.Errorf("%q: %d %s", value, page.Status, page.text())
		}
	}
}

// TestFlash_SecureCookie sends the cookie with the attributes of the session cookie if browsers use https, also through a proxy.
func TestFlash_SecureCookie(t *testing.T) {
	t.Parallel()
	b := setupSignIn(t, SignInConfig{PublicURL: "https://console.example.com"})
	b.person("ada@x", user.Admin, goodPassword)
	b.enter("ada@x", goodPassword)
	out := b.post("/console/sign-out")
	var got string
	for _, one := range out.Header.Values("Set-Cookie") {
		if strings.Contains(one, noticeCookie) {
			got = one
		}
	}
	if !strings.HasPrefix(got, "__Host-"+noticeCookie+"=") || !strings.Contains(got, "; Secure") || !strings.Contains(got, "HttpOnly; ") || !strings.Contains(got, "SameSite=Strict") || !strings.Contains(got, "Path=/;") {
		t.Errorf("%s", got)
	}
	b.follow(out).has(t, 200, "You are signed out")
}
