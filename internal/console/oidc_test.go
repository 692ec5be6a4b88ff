package console

import (
	"crypto/rand"
	"crypto/rsa"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/console/frame"

	"github.com/sendquota/sendquota/internal/testenv"
	"github.com/sendquota/sendquota/internal/testenv/oidcprovider"
	"github.com/sendquota/sendquota/internal/user"
)

func setupOIDC(t *testing.T) (*signInBundle, *oidcprovider.Provider) {
	t.Helper()
	p := oidcprovider.New(t)
	p.Claims = map[string]any{"email": "Ada@Example.com", "email_verified": true, "name": "Ada Lovelace", "groups": []string{"crm", "marketing"}}
	b := setupSignIn(t, SignInConfig{
		PublicURL: "https://console.example.com", MaxUsers: 3,
		OIDC: OIDC{Issuer: p.URL, ClientID: "sq", ClientSecret: "hush", Tenant: "acme", Roles: map[string]user.Role{"marketing": user.Editor, "crm": user.Sender, "platform": user.Admin}},
	})
	return b, p
}

// leave begins a sign-in, and returns what the provider sends the browser back to.
func (b *signInBundle) leave(to string) string {
	b.t.Helper()
	r := b.get(oidcPath + "?to=" + url.QueryEscape(to))
	if r.Status != http.StatusSeeOther {
		b.t.Fatalf("%d %s", r.Status, r.Body)
	}
	browser := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := browser.Get(r.Header.Get("Location"))
	if err != nil {
		b.t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusFound {
		b.t.Fatalf("the provider answers %d to %s", answer.StatusCode, r.Header.Get("Location"))
	}
	back := answer.Header.Get("Location")
	path, ok := strings.CutPrefix(back, "https://console.example.com")
	if !ok {
		b.t.Fatalf("the provider leads to %s", back)
	}
	return path
}

// TestOIDC_SignIn: a user is made at the first sign-in, and has the role of the groups at each one.
func TestOIDC_SignIn(t *testing.T) {
	t.Parallel()
	b, p := setupOIDC(t)
	b.get(frame.SignInPath+"?to=/console/why").has(t, 200, "/console/sign-in/oidc?to=", "With a password")
	r := b.get(b.leave("/console/pushes?status=sent"))
	if r.Status != 303 || r.Header.Get("Location") != "/console/pushes?status=sent" {
		t.Fatalf("%d %v %s", r.Status, r.Header, r.Body)
	}
	if got := p.Asked; got.Get("scope") != "openid profile email" || got.Get("redirect_uri") != "https://console.example.com/console/sign-in/oidc/callback" || got.Get("realm") != "a" {
		t.Errorf("%v", got)
	}
	b.get("/console/pushes").has(t, 200, "Ada Lovelace", "sender")
	users, err := b.store.Users(t.Context(), b.tenant)
	if err != nil || len(users) != 1 || users[0].Email != "ada@example.com" || !users[0].External || users[0].Role != user.Sender {
		t.Fatalf("%+v, %v", users, err)
	}
	// Another role, at the next sign-in; the groups may be one name, and the name be missing.
	p.Claims["groups"], p.Claims["name"], p.Claims["preferred_username"] = "marketing", "", "ada"
	b.get(b.leave(""))
	b.get("/console/pushes").has(t, 200, "ada", "editor")
	if users, err := b.store.Users(t.Context(), b.tenant); err != nil || len(users) != 1 {
		t.Errorf("%+v, %v", users, err)
	}
	// There is no password with which the user could sign in.
	b.enter("ada@example.com", goodPassword).has(t, 401)
	if log := b.log.String(); strings.Contains(log, "example.com") || strings.Contains(log, "hush") {
		t.Errorf("%s", log)
	}
}

// TestOIDC_NotFit: whoever the provider knows, and who may not sign in here.
func TestOIDC_NotFit(t *testing.T) {
	t.Parallel()
	b, p := setupOIDC(t)
	refused := func(text string) {
		t.Helper()
		b.get(b.leave("")).has(t, 403, text)
		if b.inside() {
			t.Error("the browser is signed in")
		}
	}
	for _, groups := range []any{nil, []string{}, []string{"others", "Marketing"}, 7, map[string]any{"marketing": true}, []any{[]string{"marketing"}}} {
		p.Claims["groups"] = groups
		refused("None of your groups can sign in here")
	}
	p.Claims["groups"] = []string{"platform"}
	p.Claims["email"] = ""
	refused("does not send your e-mail address")
	b.person("bea@x", user.Viewer, "")
	p.Claims["email"], p.Claims["email_verified"] = "bea@x", false
	refused("has not verified your e-mail address")
	p.Claims["email_verified"] = "true" // as some providers write it
	if r := b.get(b.leave("")); r.Status != 303 {
		t.Errorf("%d %s", r.Status, r.Body)
	}
	b.post(signOutPath)
	users, err := b.store.Users(t.Context(), b.tenant)
	if err != nil || len(users) != 1 || users[0].Role != user.Admin {
		t.Fatalf("%+v, %v", users, err)
	}
	b.person("carl@x", user.Admin, "")
	b.person("dora@x", user.Admin, "")
	p.Claims["sub"], p.Claims["email"] = "s2", "eve@x"
	refused("the maximum number of users")
	if _, err := b.store.ChangeUser(t.Context(), nil, b.tenant, users[0].ID, user.Change{Disabled: new(true)}); err != nil {
		t.Fatal(err)
	}
	p.Claims["sub"], p.Claims["email"] = "s1", "bea@x"
	refused("You cannot sign in here")
}

// TestOIDC_Forged rejects a token with another signature, audience, nonce, time or issuer.
func TestOIDC_Forged(t *testing.T) {
	t.Parallel()
	b, p := setupOIDC(t)
	for name, forge := range map[string]func(map[string]any){
		"issuer":    func(c map[string]any) { c["iss"] = "https://evil.example" },
		"audience":  func(c map[string]any) { c["aud"] = "other" },
		"expired":   func(c map[string]any) { c["exp"] = time.Now().Add(-time.Minute).Unix() },
		"nonce":     func(c map[string]any) { c["nonce"] = unguessable() },
		"no nonce":  func(c map[string]any) { delete(c, "nonce") },
		"empty sub": func(c map[string]any) { c["sub"] = "" },
		"no sub":    func(c map[string]any) { delete(c, "sub") },
		"long sub":  func(c map[string]any) { c["sub"] = strings.Repeat("s", 256) },
		"NUL":       func(c map[string]any) { c["sub"] = "s\x00" },
		"audiences": func(c map[string]any) { c["aud"] = []string{"sq", "other"} },
		"party":     func(c map[string]any) { c["aud"], c["azp"] = []string{"sq", "other"}, "other" },
		"its party": func(c map[string]any) { c["azp"] = "other" },
	} {
		p.Forge = forge
		if r := b.get(b.leave("")); r.Status != 403 || b.inside() {
			t.Errorf("%s: %d", name, r.Status)
		}
	}
	p.Forge = nil
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	p.SignWith(other)
	if r := b.get(b.leave("")); r.Status != 403 || b.inside() {
		t.Errorf("another key: %d", r.Status)
	}
	if p.Tokens != 13 || testenv.Query[int](t, b.url, `SELECT count(*) FROM users`) != 0 {
		t.Errorf("%d tokens", p.Tokens)
	}
}

// TestOIDC_Audiences: a token for several audiences counts if it was issued to the console.
func TestOIDC_Audiences(t *testing.T) {
	t.Parallel()
	b, p := setupOIDC(t)
	p.Forge = func(c map[string]any) { c["aud"], c["azp"] = []string{"sq", "other"}, "sq" }
	if r := b.get(b.leave("")); r.Status != 303 || !b.inside() {
		t.Errorf("%d %s", r.Status, r.Body)
	}
}

// TestOIDC_OwnBrowser: only the browser that began a sign-in can finish it, once.
func TestOIDC_OwnBrowser(t *testing.T) {
	t.Parallel()
	b, p := setupOIDC(t)
	back := b.leave("")
	delete(b.cookies, "__Host-sendquota-oidc")
	b.get(back).has(t, 403, "did not start in this browser")
	b.leave("") // another one's cookie does not do
	b.get(back).has(t, 403, "did not start in this browser")
	if p.Tokens != 0 {
		t.Error("a code was exchanged")
	}
	// The verifier of PKCE goes with the cookie: a stolen code in another sign-in is worth nothing.
	stolen, err := url.Parse(back)
	if err != nil {
		t.Fatal(err)
	}
	mine, err := url.Parse(b.leave(""))
	if err != nil {
		t.Fatal(err)
	}
	q := mine.Query()
	q.Set("code", stolen.Query().Get("code"))
	b.get(mine.Path+"?"+q.Encode()).has(t, 403, "is not valid")
	if p.Tokens != 0 {
		t.Error("a stolen code was exchanged")
	}
	back = b.leave("")
	away := b.cookies["__Host-sendquota-oidc"]
	if r := b.get(back); r.Status != 303 {
		t.Errorf("%d %s", r.Status, r.Body)
	}
	if _, kept := b.cookies["__Host-sendquota-oidc"]; kept {
		t.Error("the browser still has the state")
	}
	b.post(signOutPath)
	b.cookies["__Host-sendquota-oidc"] = away
	if r := b.get(back); r.Status != 403 || b.inside() { // the provider takes a code once
		t.Errorf("%d", r.Status)
	}
}

// TestOIDC_ProviderFails shows an error while the provider is down, and finds a provider later that was down at the start.
func TestOIDC_ProviderFails(t *testing.T) {
	t.Parallel()
	b, p := setupOIDC(t)
	issuer := p.URL
	b.signIn.provider.cfg.Issuer = "http://127.0.0.1:1"
	b.get(oidcPath).has(t, 502, "does not respond")
	b.signIn.provider.cfg.Issuer = issuer
	back := b.leave("")
	q, _ := url.ParseQuery(back[strings.Index(back, "?")+1:])
	b.get(callbackPath+"?error=access_denied&state="+q.Get("state")).has(t, 403, "refused it")
	p.Status = 500
	b.get(b.leave("")).has(t, 403, "is not valid")
	b.signIn.cfg.OIDC.Tenant = "nobody"
	p.Status = 0
	b.get(b.leave("")).has(t, 500, "Something went wrong")
}

// TestOIDC_None: without a provider there are no such pages.
func TestOIDC_None(t *testing.T) {
	t.Parallel()
	b := setupSignIn(t, SignInConfig{})
	b.get(oidcPath).has(t, 404)
	b.get(callbackPath).has(t, 404)
	if r := b.get(frame.SignInPath); strings.Contains(r.Body, "oidc") {
		t.Error(r.Body)
	}
}
