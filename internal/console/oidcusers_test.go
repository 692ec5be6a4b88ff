package console

import (
	"testing"

	"github.com/sendquota/sendquota/internal/user"
)

// TestOIDC_Unverified names no user by an address that the provider has not verified, neither a new nor an existing one.
func TestOIDC_Unverified(t *testing.T) {
	t.Parallel()
	b, p := setupOIDC(t)
	local := b.person("bea@x", user.Viewer, goodPassword)
	for _, verified := range []any{false, "false", nil, "yes", 1} {
		p.Claims["email_verified"] = verified
		for _, email := range []string{"new@x", "bea@x"} {
			p.Claims["email"] = email
			b.get(b.leave("")).has(t, 403, "has not verified your e-mail address")
		}
	}
	p.Claims["email"], p.Claims["email_verified"] = "ada@x", true
	if r := b.get(b.leave("")); r.Status != 303 {
		t.Fatalf("%d %s", r.Status, r.Body)
	}
	delete(p.Claims, "email_verified")
	p.Claims["email"] = "other@x"
	if r := b.get(b.leave("")); r.Status != 303 || !b.inside() {
		t.Errorf("a known subject: %d %s", r.Status, r.Body)
	}
	users, err := b.store.Users(t.Context(), b.tenant)
	if err != nil || len(users) != 2 || users[0].ID != local.ID || users[0].External || users[1].Email != "ada@x" {
		t.Errorf("%+v, %v", users, err)
	}
	// The operator may take the provider's word for every address, unless it says otherwise itself.
	b.signIn.provider.cfg.TrustEmail = true
	p.Claims["sub"], p.Claims["email"], p.Claims["email_verified"] = "s2", "eve@x", false
	b.get(b.leave("")).has(t, 403, "has not verified")
	delete(p.Claims, "email_verified")
	if r := b.get(b.leave("")); r.Status != 303 {
		t.Errorf("%d %s", r.Status, r.Body)
	}
}

// TestOIDC_TakeOver ends the password and the sessions of a user that the provider takes over, permanently.
func TestOIDC_TakeOver(t *testing.T) {
	t.Parallel()
	b, p := setupOIDC(t)
	b.person("ada@example.com", user.Sender, goodPassword)
	b.enter("ada@example.com", goodPassword).has(t, 303)
	stranger := b.cookies["__Host-sendquota"]
	delete(b.cookies, "__Host-sendquota")
	if r := b.get(b.leave("")); r.Status != 303 || !b.inside() {
		t.Fatalf("%d %s", r.Status, r.Body)
	}
	own := b.cookies["__Host-sendquota"]
	b.cookies["__Host-sendquota"] = stranger
	if b.inside() {
		t.Error("the stranger's session goes on")
	}
	delete(b.cookies, "__Host-sendquota")
	b.enter("ada@example.com", goodPassword).has(t, 401)
	p.Claims["groups"] = []string{}
	b.get(b.leave("")).has(t, 403, "None of your groups")
	b.enter("ada@example.com", goodPassword).has(t, 401)
	if b.cookies["__Host-sendquota"] = own; !b.inside() {
		t.Error("the own session has ended")
	}
}

// TestOIDC_CallbackLimit: ways back that fail at the provider have a budget of their own, also with a state that the browser made up.
func TestOIDC_CallbackLimit(t *testing.T) {
	t.Parallel()
	b, p := setupOIDC(t)
	b.signIn.cfg.Limiter = b.limiter()
	for range callbackLimit.Limit + 1 {
		if r := b.get(b.leave("")); r.Status != 303 {
			t.Fatalf("%d %s", r.Status, r.Body)
		}
		b.post(signOutPath)
	}
	p.Status = 400
	for range callbackLimit.Limit {
		b.get(b.leave("")).has(t, 403)
	}
	b.get(b.leave("")).has(t, 429)
}
