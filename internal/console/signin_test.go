package console

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/console/frame"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/testenv"
	"github.com/sendquota/sendquota/internal/user"
)

const goodPassword = "correct horse battery"

// signInBundle is a console without a signed-in user.
type signInBundle struct {
	*bundle
	signIn  *SignIn
	address string // of the browser
}

func setupSignIn(t *testing.T, cfg SignInConfig) *signInBundle {
	t.Helper()
	b := &signInBundle{bundle: setupAlone(t), address: "192.0.2.1"}
	cfg.Log = slog.New(slog.NewJSONHandler(&b.log, nil))
	cfg.Address = func(*http.Request) string { return b.address }
	b.signIn = NewSignIn(b.store, cfg)
	b.console = New(b.handler, b.signIn, frame.Config{Log: cfg.Log})
	return b
}

// person makes a user with a password; "": without.
func (b *signInBundle) person(email string, role user.Role, password string) user.User {
	b.t.Helper()
	return b.personOf(b.tenant, email, role, password)
}

// personOf is person for a user of another tenant.
func (b *signInBundle) personOf(tenant uuid.UUID, email string, role user.Role, password string) user.User {
	b.t.Helper()
	_, link := user.NewLink()
	u, err := b.store.CreateUser(b.t.Context(), user.New{Tenant: tenant, Email: email, Name: "N. " + email, Role: role, Link: link})
	if err != nil {
		b.t.Fatal(err)
	}
	if password != "" {
		phc, err := b.signIn.passwords.Hash(b.t.Context(), "", user.SaltOf(b.secret(), email), password)
		if err != nil {
			b.t.Fatal(err)
		}
		if u, err = b.store.SetPassword(b.t.Context(), link, phc); err != nil {
			b.t.Fatal(err)
		}
	}
	return u
}

func (b *signInBundle) secret() []byte {
	b.t.Helper()
	secret, err := b.store.Secret(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	return secret
}

func (b *signInBundle) enter(email, password string) reply {
	b.t.Helper()
	return b.post(frame.SignInPath, "email", email, "password", password)
}

// inside reports whether the browser is signed in.
func (b *signInBundle) inside() bool {
	b.t.Helper()
	return b.get("/console/pushes").Status == http.StatusOK
}

// TestSignIn_Life of a user: the link is opened, used, and over; then the password signs in, until the user signs out.
func TestSignIn_Life(t *testing.T) {
	t.Parallel()
	b := setupSignIn(t, SignInConfig{PublicURL: "http://localhost"})
	token, link := user.NewLink()
	if _, err := b.store.CreateUser(t.Context(), user.New{Tenant: b.tenant, Email: "ada@example.com", Name: "Ada <b>", Role: user.Viewer, Link: link}); err != nil {
		t.Fatal(err)
	}
	if r := b.get("/console/pushes?status=sent"); r.Status != 303 || r.Header.Get("Location") != "/console/sign-in?to=%2Fconsole%2Fpushes%3Fstatus%3Dsent" {
		t.Errorf("%d %v", r.Status, r.Header)
	}
	for range 2 { // looking at it, as mail scanners do, does not use it up
		r := b.get(user.LinkPath + token)
		r.has(t, 200, "ada@example.com", `autocomplete="new-password"`)
		if r.Header.Get("Referrer-Policy") != "no-referrer" || strings.Contains(r.Body, "Menu") {
			t.Errorf("%v", r.Header)
		}
	}
	r := b.post(user.LinkPath+token, "password", "Short-One", "again", "short-two")
	r.has(t, 422, "must have at least 12 characters", "the passwords do not match")
	if strings.Contains(r.Body, "Short-One") {
		t.Error("the page repeats the password")
	}
	b.post(user.LinkPath+token, "password", "ada@example.com", "again", "ada@example.com").has(t, 422, "must not be your name")
	b.follow(b.post(user.LinkPath+token, "password", goodPassword, "again", goodPassword)).has(t, 200, "Your password is set", `value="acme"`)
	for _, r := range []reply{b.get(user.LinkPath + token), b.post(user.LinkPath+token, "password", goodPassword+"2", "again", goodPassword+"2"), b.get(user.LinkPath + "x")} {
		r.has(t, 404, "This link no longer works")
	}

	r = b.post(frame.SignInPath, "email", "ada@example.com", "password", "Wrong-Horse-1", "to", "/console/pushes?status=sent")
	r.has(t, 401, "The e-mail address or the password is wrong", `value="ada@example.com"`, `value="/console/pushes?status=sent"`)
	if strings.Contains(r.Body, "Wrong-Horse-1") || r.Header.Get("Set-Cookie") != "" {
		t.Errorf("%v", r)
	}
	r = b.post(frame.SignInPath, "email", " Ada@Example.com ", "password", goodPassword, "to", "/console/pushes?status=sent")
	cookie := r.Header.Get("Set-Cookie")
	if r.Status != 303 || r.Header.Get("Location") != "/console/pushes?status=sent" || !strings.HasPrefix(cookie, "sendquota=") || !strings.Contains(cookie, "HttpOnly; SameSite=Lax") || !strings.Contains(cookie, "Path=/;") {
		t.Errorf("%d %v", r.Status, r.Header)
	}
	b.get("/console/pushes").has(t, 200, "Ada <b>", "viewer")
	if r := b.get(frame.SignInPath + "?to=/console/why"); r.Status != 303 || r.Header.Get("Location") != "/console/why" {
		t.Errorf("%d %v", r.Status, r.Header)
	}
	// The API never takes the cookie.
	api := httptest.NewRequestWithContext(t.Context(), "GET", "/v1/pushes", nil)
	api.AddCookie(&http.Cookie{Name: "sendquota", Value: b.cookies["sendquota"]})
	rec := httptest.NewRecorder()
	if b.handler.ServeHTTP(rec, api); rec.Code != 401 {
		t.Errorf("%d", rec.Code)
	}
	kept := b.cookies["sendquota"]
	if n := testenv.Query[int](t, b.url, `SELECT count(*) FROM sessions WHERE token_hash = sha256($1::text::bytea) AND address = '192.0.2.1'`, kept); n != 1 {
		t.Errorf("%d sessions with the hash of the cookie", n)
	}
	b.follow(b.post("/console/sign-out")).has(t, 200, "You are signed out")
	b.cookies["sendquota"] = kept
	if b.inside() {
		t.Error("the session goes on")
	}
	for _, secret := range []string{goodPassword, kept, token, "ada@example.com"} {
		if strings.Contains(b.log.String(), secret) {
			t.Errorf("the log has %q", secret)
		}
	}
}

// TestSignIn_SecureCookie: over https it is bound to the host.
func TestSignIn_SecureCookie(t *testing.T) {
	t.Parallel()
	b := setupSignIn(t, SignInConfig{PublicURL: "https://console.example.com"})
	b.person("ada@x", user.Admin, goodPassword)
	got := b.enter("ada@x", goodPassword).Header.Get("Set-Cookie")
	if !strings.HasPrefix(got, "__Host-sendquota=") || !strings.Contains(got, "; Secure") || !strings.Contains(got, "Path=/;") || strings.Contains(got, "Domain") {
		t.Errorf("%s", got)
	}
}

// TestSignIn_NewToken never makes a session of a token that another party put into the browser. A new sign-in ends the previous session.
func TestSignIn_NewToken(t *testing.T) {
	t.Parallel()
	b := setupSignIn(t, SignInConfig{})
	b.person("ada@x", user.Admin, goodPassword)
	b.cookies["sendquota"] = "planted"
	b.enter("ada@x", goodPassword)
	first := b.cookies["sendquota"]
	if first == "planted" || !b.inside() {
		t.Fatalf("the token is %q", first)
	}
	b.enter("ada@x", goodPassword)
	if b.cookies["sendquota"] == first || !b.inside() {
		t.Error("the token is the same")
	}
	b.cookies["sendquota"] = first
	if b.inside() {
		t.Error("the former session goes on")
	}
}

// countedPasswords counts the comparisons.
type countedPasswords struct {
	passwords
	compared int
}

func (c *countedPasswords) Match(ctx context.Context, address string, salt user.Salt, hashes []string, password string) (int, error) {
	c.compared++
	return c.passwords.Match(ctx, address, salt, hashes, password)
}

// TestSignIn_SameAnswer, after the same work, whatever is wrong: one comparison, which takes as long also with no hash.
func TestSignIn_SameAnswer(t *testing.T) {
	t.Parallel()
	b := setupSignIn(t, SignInConfig{})
	b.person("ada@x", user.Admin, goodPassword)
	b.person("new@x", user.Admin, "")
	off := b.person("off@x", user.Viewer, goodPassword)
	if _, err := b.store.ChangeUser(t.Context(), nil, b.tenant, off.ID, user.Change{Disabled: new(true)}); err != nil {
		t.Fatal(err)
	}
	other, _, err := b.store.CreateTenant(t.Context(), "other")
	if err != nil {
		t.Fatal(err)
	}
	b.person("two@x", user.Viewer, goodPassword)
	b.personOf(other, "two@x", user.Admin, goodPassword+"2")
	counted := &countedPasswords{passwords: b.signIn.passwords}
	b.signIn.passwords = counted
	pages := map[string]string{}
	for name, row := range map[string][2]string{
		"wrong": {"ada@x", goodPassword + "!"}, "nobody": {"eve@x", goodPassword}, "no password": {"new@x", goodPassword}, "empty": {"new@x", ""}, "disabled": {"off@x", goodPassword},
		"long": {"ada@x", goodPassword + strings.Repeat("x", 2000)}, "no name": {"ada", goodPassword},
		"two teams": {"two@x", goodPassword + "!"},
	} {
		counted.compared = 0
		r := b.enter(row[0], row[1])
		r.has(t, 401)
		if counted.compared != 1 {
			t.Errorf("%s: %d comparisons", name, counted.compared)
		}
		pages[name] = strings.Replace(r.Body, `value="`+row[0]+`"`, "", 1)
	}
	for name, page := range pages {
		if page != pages["wrong"] {
			t.Errorf("%s has another page:\n%s", name, page)
		}
	}
}

// TestSignIn_Teams signs in the user with the matching password if several teams share an address, or else the user of the named team.
func TestSignIn_Teams(t *testing.T) {
	t.Parallel()
	b := setupSignIn(t, SignInConfig{})
	other, _, err := b.store.CreateTenant(t.Context(), "other")
	if err != nil {
		t.Fatal(err)
	}
	b.personOf(other, "ada@x", user.Admin, goodPassword+"2")
	b.person("ada@x", user.Viewer, goodPassword)
	inside := func(role string) {
		t.Helper()
		b.get("/console/pushes").has(t, 200, role)
		b.post(signOutPath)
	}
	b.enter("ada@x", goodPassword).has(t, 303)
	inside("viewer")
	b.enter("ada@x", goodPassword+"2").has(t, 303)
	inside("admin")
	b.post(frame.SignInPath, "email", "ada@x", "password", goodPassword, "team", "other").has(t, 401, `value="other"`)
	b.post(frame.SignInPath, "email", "ada@x", "password", goodPassword, "team", "acme").has(t, 303)
	inside("viewer")
}

// TestSignIn_SamePassword: with one password in two teams, the user whose password was set last is signed in. So whoever gives a user of
// the own team another's address learns no password: the own one, which was set for the try, is the last.
func TestSignIn_SamePassword(t *testing.T) {
	t.Parallel()
	b := setupSignIn(t, SignInConfig{})
	other, _, err := b.store.CreateTenant(t.Context(), "other")
	if err != nil {
		t.Fatal(err)
	}
	for _, first := range []uuid.UUID{b.tenant, other} {
		email, last := first.String()+"@x", b.tenant
		if first == b.tenant {
			last = other
		}
		b.personOf(first, email, user.Admin, goodPassword)
		want := b.personOf(last, email, user.Admin, goodPassword)
		b.enter(email, goodPassword).has(t, 303)
		if of := testenv.Query[string](t, b.url, `SELECT user_id::text FROM sessions`); of != want.ID.String() {
			t.Errorf("the user %s is signed in, and not %s", of, want.ID)
		}
		b.post(signOutPath)
	}
}

// TestSignIn_ChangesAtOnce: a session has the role that the user has now, and ends with the user.
func TestSignIn_ChangesAtOnce(t *testing.T) {
	t.Parallel()
	b := setupSignIn(t, SignInConfig{})
	ada := b.person("ada@x", user.Admin, goodPassword)
	b.person("bea@x", user.Admin, "")
	b.enter("ada@x", goodPassword)
	one := b.submit("aiko", time.Hour)
	viewer := user.Viewer
	if _, err := b.store.ChangeUser(t.Context(), nil, b.tenant, ada.ID, user.Change{Role: &viewer}); err != nil {
		t.Fatal(err)
	}
	b.post("/console/pushes/"+one.ID+"/cancel").has(t, 403, "Your role, viewer, cannot do this")
	if _, err := b.store.ChangeUser(t.Context(), nil, b.tenant, ada.ID, user.Change{Disabled: new(true)}); err != nil {
		t.Fatal(err)
	}
	if b.inside() {
		t.Error("the session of a disabled user goes on")
	}
}

// TestSession_Ends after the lifetime, however much is done, and when nothing is done.
func TestSession_Ends(t *testing.T) {
	t.Parallel()
	b := setupSignIn(t, SignInConfig{Lifetime: 2 * time.Hour, Idle: time.Hour})
	b.person("ada@x", user.Admin, goodPassword)
	b.enter("ada@x", goodPassword)
	left := func() float64 {
		return testenv.Query[float64](t, b.url, `SELECT extract(epoch FROM expires_at - clock_timestamp())::float8 FROM sessions`)
	}
	if got := left(); got < 3000 || got > 3600 {
		t.Errorf("it ends in %v s", got)
	}
	// Used again later, it goes on for another hour.
	testenv.Exec(t, b.url, `UPDATE sessions SET last_seen_at = last_seen_at - interval '50 minutes', expires_at = expires_at - interval '50 minutes'`)
	if !b.inside() || left() < 3000 {
		t.Errorf("it ends in %v s", left())
	}
	// An hour before the end of its lifetime this is less.
	b.signIn.sessions.IdleTimeout = 3 * time.Hour
	testenv.Exec(t, b.url, `UPDATE sessions SET last_seen_at = last_seen_at - interval '50 minutes'`)
	if got := left(); !b.inside() || left() <= got || left() > 7200 {
		t.Errorf("it ends in %v s", left())
	}
	testenv.Exec(t, b.url, `UPDATE sessions SET expires_at = clock_timestamp()`)
	if b.inside() {
		t.Error("it goes on")
	}
}

// TestSignIn_CrossOrigin rejects sign-ins and sign-outs that another site sends.
func TestSignIn_CrossOrigin(t *testing.T) {
	t.Parallel()
	b := setupSignIn(t, SignInConfig{})
	for _, path := range []string{frame.SignInPath, signOutPath, user.LinkPath + "x"} {
		r := httptest.NewRequestWithContext(t.Context(), "POST", path, nil)
		r.Header.Set("Sec-Fetch-Site", "cross-site")
		if got := b.send(r); got.Status != 403 || !strings.Contains(got.Header.Get("Content-Security-Policy"), "default-src 'none'") || got.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %d, %v", path, got.Status, got.Header)
		}
	}
}

// TestSignIn_Postgres: without it nobody signs in, and a page says so.
func TestSignIn_PostgresDown(t *testing.T) {
	t.Parallel()
	b := setupSignIn(t, SignInConfig{})
	b.person("eve@x", user.Viewer, goodPassword)
	b.enter("eve@x", goodPassword)
	if !b.inside() {
		t.Fatal("no user is signed in")
	}
	b.store.Close()
	page := b.get(frame.HomePath)
	page.has(t, 503, "<h1>The database does not respond</h1>", "Accepted messages are safe", `href="/console/now"`)
	if page.Header.Get("Retry-After") == "" || page.Header.Get("Content-Security-Policy") == "" || !strings.HasPrefix(page.Header.Get("Content-Type"), "text/html") {
		t.Errorf("%v", page.Header)
	}
	b.enter("ada@x", goodPassword)
	r := b.enter("ada@x", goodPassword)
	if r.Status < 500 || strings.Contains(r.Body, "pool") {
		t.Errorf("%d %s", r.Status, r.Body)
	}
}

func TestSafePath(t *testing.T) {
	t.Parallel()
	for to, want := range map[string]string{
		"/console/pushes?status=sent": "/console/pushes?status=sent", "/console/recipients/a%2Fb": "/console/recipients/a%2Fb",
		"": frame.HomePath, "/console": frame.HomePath, "https://evil.example/console/": frame.HomePath, "//evil.example/console/": frame.HomePath, "/\\evil.example": frame.HomePath, "/console/..//evil.example": frame.HomePath,
		"/console/../../evil": frame.HomePath, "/console/\\..": frame.HomePath, "javascript:alert(1)": frame.HomePath, "/v1/pushes": frame.HomePath, "/console/sign-in?to=x": frame.HomePath, "/console/set-password/x": frame.HomePath,
		"/console/a\r\nb": frame.HomePath, "console/now": frame.HomePath, "/console/%2e%2e/v1": frame.HomePath,
	} {
		if got := safePath(to); got != want {
			t.Errorf("%q leads to %q, want %q", to, got, want)
		}
	}
}
