package accounts_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/store/storetest"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store/accounts"
	"github.com/sendquota/sendquota/internal/user"
)

// begin signs a user in with the token that a number stands for.
func (b *bundle) begin(t testing.TB, u user.User, n byte) user.Session {
	t.Helper()
	v, err := b.BeginSession(t.Context(), b.TenantID, user.NewSession{Hash: [32]byte{n}, User: u.ID, ExpiresAt: time.Now().Add(time.Hour), Address: "192.0.2.1", UserAgent: "Firefox"})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// goesOn reports whether the token that a number stands for has a session.
func (b *bundle) goesOn(t testing.TB, n byte) bool {
	t.Helper()
	_, _, _, err := b.FindSession(t.Context(), [32]byte{n})
	if err != nil && !errors.Is(err, push.ErrNotFound) {
		t.Fatal(err)
	}
	return err == nil
}

func TestSessions_Life(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	ctx := t.Context()
	ada, _ := b.newUser(t, "ada@x", user.Admin)
	v := b.begin(t, ada, 1)
	if v.User != ada.ID || v.Tenant != b.TenantID || v.Address != "192.0.2.1" || v.UserAgent != "Firefox" {
		t.Errorf("%+v", v)
	}
	if err := b.SaveSession(ctx, b.TenantID, [32]byte{1}, []byte("data"), time.Now().Add(2*time.Hour)); err != nil {
		t.Fatal(err)
	}
	got, u, data, err := b.FindSession(ctx, [32]byte{1})
	if err != nil || got.ID != v.ID || string(data) != "data" || u.Email != "ada@x" || u.LastSignInAt == nil || got.ExpiresAt.Before(v.ExpiresAt.Add(time.Minute)) {
		t.Errorf("%+v, %+v, %q, %v", got, u, data, err)
	}
	// The session has the tenant's current caps.
	one := 1
	if _, err := b.CapTenant(ctx, ada.TenantName, accounts.CapChange{PendingPushes: &accounts.NewCap{Value: &one}}); err != nil {
		t.Fatal(err)
	}
	if _, u, _, err := b.FindSession(ctx, [32]byte{1}); err != nil || u.Caller().Caps.PendingPushes == nil || *u.Caller().Caps.PendingPushes != 1 || u.Caller().Caps.RecipientsPerDay != nil {
		t.Errorf("%+v, %v", u, err)
	}
	// It has the current user, too.
	b.newUser(t, "bea@x", user.Admin)
	viewer := user.Viewer
	if _, err := b.ChangeUser(ctx, nil, b.TenantID, ada.ID, user.Change{Role: &viewer}); err != nil {
		t.Fatal(err)
	}
	if _, u, _, err := b.FindSession(ctx, [32]byte{1}); err != nil || u.Role != user.Viewer {
		t.Errorf("%+v, %v", u, err)
	}
	if err := b.DropSession(ctx, [32]byte{1}); err != nil || b.goesOn(t, 1) {
		t.Errorf("it goes on: %v", err)
	}
	// A request under way does not restart a session that has ended.
	if err := b.SaveSession(ctx, b.TenantID, [32]byte{1}, []byte("more"), time.Now().Add(time.Hour)); err != nil || b.goesOn(t, 1) {
		t.Errorf("it goes on: %v", err)
	}
}

// TestSessions_End checks that a session ends with its time, by name, with all sessions of a user, with the user, and
// with the password.
func TestSessions_End(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	ctx := t.Context()
	ada, _ := b.newUser(t, "ada@x", user.Viewer)
	bea, link := b.newUser(t, "bea@x", user.Viewer)
	first := b.begin(t, ada, 1)
	b.begin(t, ada, 2)
	b.begin(t, bea, 3)
	theirs := b.begin(t, bea, 4)

	if n, err := b.EndSessions(ctx, nil, b.TenantID, ada.ID, theirs.ID); n != 0 || err != nil || !b.goesOn(t, 4) {
		t.Errorf("another's session: %d, %v", n, err)
	}
	if n, err := b.EndSessions(ctx, nil, b.TenantID, ada.ID, first.ID); n != 1 || err != nil || b.goesOn(t, 1) || !b.goesOn(t, 2) {
		t.Errorf("%d, %v", n, err)
	}
	b.Exec(t, `UPDATE sessions SET expires_at = clock_timestamp() WHERE token_hash = $1`, append([]byte{2}, make([]byte, 31)...))
	if list, err := b.Sessions(ctx, nil, b.TenantID, ada.ID); err != nil || len(list) != 0 || b.goesOn(t, 2) {
		t.Errorf("expired: %+v, %v", list, err)
	}
	if n, err := b.EndSessions(ctx, nil, b.TenantID, bea.ID, uuid.Nil); n != 2 || err != nil || b.goesOn(t, 3) || b.goesOn(t, 4) {
		t.Errorf("%d, %v", n, err)
	}
	b.begin(t, bea, 5)
	if _, err := b.SetPassword(ctx, link, "$a"); err != nil || b.goesOn(t, 5) {
		t.Errorf("it goes on with another password: %v", err)
	}
	b.begin(t, bea, 6)
	if _, err := b.ChangeUser(ctx, nil, b.TenantID, bea.ID, user.Change{Disabled: new(true)}); err != nil || b.goesOn(t, 6) {
		t.Errorf("it goes on: %v", err)
	}
	if _, err := b.BeginSession(ctx, b.TenantID, user.NewSession{Hash: [32]byte{7}, User: bea.ID, ExpiresAt: time.Now().Add(time.Hour)}); !errors.Is(err, push.ErrNotFound) {
		t.Errorf("disabled: %v", err)
	}
	// A sign-in removes the expired sessions of other users.
	b.begin(t, ada, 8)
	carl, _ := b.newUser(t, "carl@x", user.Viewer)
	b.begin(t, carl, 9)
	if n := storetest.Ask[int](t, b.DB, `SELECT count(*) FROM sessions`); n != 2 {
		t.Errorf("%d sessions", n)
	}
	if err := b.DeleteUser(ctx, nil, b.TenantID, ada.ID); err != nil || b.goesOn(t, 8) {
		t.Errorf("it goes on: %v", err)
	}
}

// TestBeginSession_Most checks that a session beyond the maximum replaces the one that was idle for longest.
func TestBeginSession_Most(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	ada, _ := b.newUser(t, "ada@x", user.Viewer)
	for n := range byte(user.MaxSessions + 2) {
		b.begin(t, ada, n+1)
	}
	if list, err := b.Sessions(t.Context(), nil, b.TenantID, ada.ID); err != nil || len(list) != user.MaxSessions || b.goesOn(t, 1) || b.goesOn(t, 2) || !b.goesOn(t, 3) {
		t.Errorf("%d, %v", len(list), err)
	}
}

// TestBeginSession_Disabled checks that a user who is disabled during the sign-in gets no session.
func TestBeginSession_Disabled(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	for n := range byte(10) {
		u, _ := b.newUser(t, string('a'+rune(n))+"@x", user.Viewer)
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := b.BeginSession(t.Context(), b.TenantID, user.NewSession{Hash: [32]byte{n}, User: u.ID, ExpiresAt: time.Now().Add(time.Hour)})
			if err != nil && !errors.Is(err, push.ErrNotFound) {
				t.Error(err)
			}
		})
		wg.Go(func() {
			if _, err := b.ChangeUser(t.Context(), nil, b.TenantID, u.ID, user.Change{Disabled: new(true)}); err != nil {
				t.Error(err)
			}
		})
		wg.Wait()
	}
	if n := storetest.Ask[int](t, b.DB, `SELECT count(*) FROM sessions`); n != 0 {
		t.Errorf("%d sessions of disabled users", n)
	}
}

// TestBeginSession_OldPassword checks that a password that was replaced during the sign-in opens no session.
func TestBeginSession_OldPassword(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	ctx := t.Context()
	ada, link := b.newUser(t, "ada@x", user.Admin)
	if _, err := b.SetPassword(ctx, link, "$new"); err != nil {
		t.Fatal(err)
	}
	begin := func(n byte, password string) error {
		_, err := b.BeginSession(ctx, b.TenantID, user.NewSession{Hash: [32]byte{n}, User: ada.ID, Password: password, ExpiresAt: time.Now().Add(time.Hour)})
		return err
	}
	if err := begin(1, "$old"); !errors.Is(err, push.ErrNotFound) {
		t.Errorf("the old password: %v", err)
	}
	if err := begin(2, "$new"); err != nil {
		t.Error(err)
	}
	if err := begin(3, ""); err != nil { // signed in by a provider
		t.Error(err)
	}
}

// TestChangeUser_LinkOfARole checks that a link that was made for one role opens no other role.
func TestChangeUser_LinkOfARole(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	bea, link := b.newUser(t, "bea@x", user.Viewer)
	name, role := "Bea", user.Admin
	if _, err := b.ChangeUser(t.Context(), nil, b.TenantID, bea.ID, user.Change{Name: &name}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.UserByLink(t.Context(), link); err != nil {
		t.Errorf("another name ends the link: %v", err)
	}
	if _, err := b.ChangeUser(t.Context(), nil, b.TenantID, bea.ID, user.Change{Role: &role}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.UserByLink(t.Context(), link); !errors.Is(err, push.ErrNotFound) {
		t.Errorf("the link of a viewer opens an admin's account: %v", err)
	}
}
