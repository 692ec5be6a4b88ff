package accounts_test

import (
	"errors"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/store/storetest"

	"github.com/sendquota/sendquota/internal/store/pg"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/user"
)

// TestExternalUser_EndsAll checks that the password, the link and the sessions of a user end when the provider
// takes the user over, or changes the role or the address, in the same transaction. A sign-in without such a change ends
// none of them.
func TestExternalUser_EndsAll(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		change func(e *user.External)
		ends   bool
	}{
		"role":      {func(e *user.External) { e.Role = user.Admin }, true},
		"less":      {func(e *user.External) { e.Role = user.Viewer }, true},
		"address":   {func(e *user.External) { e.Email = "new@x" }, true},
		"name":      {func(e *user.External) { e.Name = "Ada L" }, false},
		"take-over": {nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setupAlone(t)
			b.Store = storetest.OpenURL(t, b.URL, pg.Config{ExternalPasswords: true})
			ctx := t.Context()
			ada, link := b.newUser(t, "ada@x", user.Sender)
			e := user.External{Tenant: b.TenantID, Issuer: "https://id", Subject: "s1", Email: "ada@x", EmailVerified: true, Role: user.Sender}
			if row.change != nil {
				if _, err := b.ExternalUser(ctx, e); err != nil {
					t.Fatal(err)
				}
				if _, err := b.LinkUser(ctx, nil, b.TenantID, ada.ID, link); err != nil {
					t.Fatal(err)
				}
				row.change(&e)
			}
			if _, err := b.SetPassword(ctx, link, "$a"); err != nil {
				t.Fatal(err)
			}
			b.begin(t, ada, 1)
			_, next := user.NewLink()
			if _, err := b.LinkUser(ctx, nil, b.TenantID, ada.ID, next); err != nil {
				t.Fatal(err)
			}
			u, err := b.ExternalUser(ctx, e)
			if err != nil || u.ID != ada.ID || u.HasPassword == row.ends || (u.LinkEndsAt == nil) != row.ends || b.goesOn(t, 1) == row.ends {
				t.Errorf("%+v, %v", u, err)
			}
			_, err = b.BeginSession(ctx, b.TenantID, user.NewSession{Hash: [32]byte{2}, User: ada.ID, Password: "$a", ExpiresAt: time.Now().Add(time.Hour)})
			if errors.Is(err, push.ErrNotFound) != row.ends {
				t.Errorf("the password begins a session: %v", err)
			}
		})
	}
}

// TestExternalUser_NoPassword checks that users of the provider have no links and cannot sign in with a password,
// unless the operator allows it.
func TestExternalUser_NoPassword(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	ctx := t.Context()
	ada, err := b.ExternalUser(ctx, user.External{Tenant: b.TenantID, Issuer: "https://id", Subject: "s1", Email: "ada@x", EmailVerified: true, Role: user.Viewer})
	if err != nil {
		t.Fatal(err)
	}
	_, link := user.NewLink()
	if _, err := b.LinkUser(ctx, nil, b.TenantID, ada.ID, link); !errors.Is(err, user.ErrExternal) {
		t.Errorf("%v", err)
	}
	allowed := storetest.OpenURL(t, b.URL, pg.Config{ExternalPasswords: true})
	if _, err := allowed.LinkUser(ctx, nil, b.TenantID, ada.ID, link); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{second(b.UserByLink(ctx, link)), second(b.SetPassword(ctx, link, "$a"))} {
		if !errors.Is(err, push.ErrNotFound) {
			t.Errorf("the link opens: %v", err)
		}
	}
	if _, err := allowed.SetPassword(ctx, link, "$a"); err != nil {
		t.Fatal(err)
	}
	if found, err := b.Credentials(ctx, "ada@x", ""); len(found) != 0 || err != nil {
		t.Errorf("there is a password: %+v, %v", found, err)
	}
	if found, err := allowed.Credentials(ctx, "ada@x", ""); len(found) != 1 || err != nil || found[0].Hash != "$a" {
		t.Errorf("%+v, %v", found, err)
	}
}
