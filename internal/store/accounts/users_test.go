package accounts_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/store/storetest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/user"
)

// newUser creates a user and returns the hash of its link.
func (b *bundle) newUser(t testing.TB, email string, role user.Role) (user.User, [32]byte) {
	t.Helper()
	_, link := user.NewLink()
	u, err := b.CreateUser(t.Context(), user.New{Tenant: b.TenantID, Email: email, Name: "N " + email, Role: role, Link: link})
	if err != nil {
		t.Fatal(err)
	}
	return u, link
}

func TestUsers_Life(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	ctx := t.Context()
	ada, link := b.newUser(t, "ada@x", user.Admin)
	if ada.TenantName != b.TenantID.String() || ada.HasPassword || ada.External || ada.LinkEndsAt == nil || ada.DisabledAt != nil || ada.LastSignInAt != nil || ada.Name != "N ada@x" {
		t.Errorf("%+v", ada)
	}
	if ends := ada.LinkEndsAt.Sub(ada.CreatedAt); ends < 24*time.Hour-time.Minute || ends > 24*time.Hour+time.Minute {
		t.Errorf("the link lives for %s", ends)
	}
	if _, err := b.CreateUser(ctx, user.New{Tenant: b.TenantID, Email: "ada@x", Role: user.Viewer}); !errors.Is(err, user.ErrEmailTaken) {
		t.Errorf("%v", err)
	}
	// Only the owner of the link gets in with it, and only once.
	if u, err := b.UserByLink(ctx, link); err != nil || u.ID != ada.ID {
		t.Errorf("%+v, %v", u, err)
	}
	if _, err := b.SetPassword(ctx, [32]byte{}, "$a"); !errors.Is(err, push.ErrNotFound) {
		t.Errorf("%v", err)
	}
	if u, err := b.SetPassword(ctx, link, "$a"); err != nil || u.ID != ada.ID || !u.HasPassword {
		t.Errorf("%+v, %v", u, err)
	}
	if _, err := b.SetPassword(ctx, link, "$b"); !errors.Is(err, push.ErrNotFound) {
		t.Errorf("a used link: %v", err)
	}
	if found, err := b.Credentials(ctx, "ada@x", ""); err != nil || len(found) != 1 || found[0].ID != ada.ID || found[0].Hash != "$a" {
		t.Errorf("%+v, %v", found, err)
	}

	// A change writes only the fields that it names.
	name, role := "Ada", user.Sender
	bea, _ := b.newUser(t, "bea@x", user.Admin)
	got, err := b.ChangeUser(ctx, nil, b.TenantID, bea.ID, user.Change{Name: &name})
	if err != nil || got.Name != "Ada" || got.Role != user.Admin || got.LinkEndsAt == nil {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err = b.ChangeUser(ctx, nil, b.TenantID, bea.ID, user.Change{Role: &role}); err != nil || got.Role != user.Sender || got.Name != "Ada" {
		t.Errorf("%+v, %v", got, err)
	}
	all, err := b.Users(ctx, b.TenantID)
	if err != nil || len(all) != 2 || all[0].ID != ada.ID || all[1].ID != bea.ID {
		t.Errorf("%+v, %v", all, err)
	}
	if err := b.DeleteUser(ctx, nil, b.TenantID, bea.ID); err != nil {
		t.Error(err)
	}
	if log := storetest.Ask[string](t, b.DB, `SELECT string_agg(action, ' ' ORDER BY created_at) FROM audit_log`); log != "user.create user.change user.create user.change user.change user.delete" {
		t.Errorf("the audit log has %s", log)
	}
	for _, err := range []error{b.DeleteUser(ctx, nil, b.TenantID, bea.ID), second(b.User(ctx, b.TenantID, bea.ID)), second(b.ChangeUser(ctx, nil, b.TenantID, bea.ID, user.Change{})), second(b.LinkUser(ctx, nil, b.TenantID, bea.ID, link))} {
		if !errors.Is(err, push.ErrNotFound) {
			t.Errorf("%v", err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// TestUsers_Links checks that a link ends with its time, with the next link, and when the user is disabled.
func TestUsers_Links(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	ctx := t.Context()
	ada, first := b.newUser(t, "ada@x", user.Viewer)
	_, next := user.NewLink()
	if _, err := b.LinkUser(ctx, nil, uuid.Nil, ada.ID, next); err != nil {
		t.Fatal(err)
	}
	if _, err := b.UserByLink(ctx, first); !errors.Is(err, push.ErrNotFound) {
		t.Errorf("the earlier link: %v", err)
	}
	b.Exec(t, `UPDATE users SET link_expires_at = clock_timestamp()`)
	for _, err := range []error{second(b.UserByLink(ctx, next)), second(b.SetPassword(ctx, next, "$a"))} {
		if !errors.Is(err, push.ErrNotFound) {
			t.Errorf("a link that is over: %v", err)
		}
	}
	if _, err := b.LinkUser(ctx, nil, b.TenantID, ada.ID, next); err != nil {
		t.Fatal(err)
	}
	if _, err := b.ChangeUser(ctx, nil, b.TenantID, ada.ID, user.Change{Disabled: new(true)}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.UserByLink(ctx, next); !errors.Is(err, push.ErrNotFound) {
		t.Errorf("a link of a disabled user: %v", err)
	}
	if _, err := b.LinkUser(ctx, nil, b.TenantID, ada.ID, next); !errors.Is(err, user.ErrDisabled) {
		t.Errorf("%v", err)
	}
	// The old link stays invalid after the user is enabled again.
	if u, err := b.ChangeUser(ctx, nil, b.TenantID, ada.ID, user.Change{Disabled: new(false)}); err != nil || u.DisabledAt != nil || u.LinkEndsAt != nil {
		t.Errorf("%+v, %v", u, err)
	}
}

// TestSetPassword_Concurrent checks that one of many concurrent uses of a link succeeds.
func TestSetPassword_Concurrent(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	_, link := b.newUser(t, "ada@x", user.Admin)
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		used []string
	)
	for i := range 8 {
		wg.Go(func() {
			phc := fmt.Sprint("$", i)
			switch _, err := b.SetPassword(t.Context(), link, phc); {
			case err == nil:
				mu.Lock()
				used = append(used, phc)
				mu.Unlock()
			case !errors.Is(err, push.ErrNotFound):
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if found, err := b.Credentials(t.Context(), "ada@x", ""); len(used) != 1 || len(found) != 1 || found[0].Hash != used[0] {
		t.Errorf("%v set a password, %+v is kept (%v)", used, found, err)
	}
}

// TestUsers_LastAdmin checks that concurrent changes never remove the last admin.
func TestUsers_LastAdmin(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	ctx := t.Context()
	viewer := user.Viewer
	ada, _ := b.newUser(t, "ada@x", user.Admin)
	b.newUser(t, "eve@x", user.Editor)
	for name, err := range map[string]error{
		"delete":  b.DeleteUser(ctx, nil, b.TenantID, ada.ID),
		"lower":   second(b.ChangeUser(ctx, nil, b.TenantID, ada.ID, user.Change{Role: &viewer})),
		"disable": second(b.ChangeUser(ctx, nil, b.TenantID, ada.ID, user.Change{Disabled: new(true)})),
	} {
		if !errors.Is(err, user.ErrLastAdmin) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for round := range 3 {
		admins := []user.User{ada}
		for i := range 3 {
			u, _ := b.newUser(t, fmt.Sprintf("a%d.%d@x", round, i), user.Admin)
			admins = append(admins, u)
		}
		var wg sync.WaitGroup
		for i, u := range admins {
			wg.Go(func() {
				var err error
				switch i % 3 {
				case 0:
					err = b.DeleteUser(ctx, nil, b.TenantID, u.ID)
				case 1:
					_, err = b.ChangeUser(ctx, nil, b.TenantID, u.ID, user.Change{Role: &viewer})
				case 2:
					_, err = b.ChangeUser(ctx, nil, b.TenantID, u.ID, user.Change{Disabled: new(true)})
				}
				if err != nil && !errors.Is(err, user.ErrLastAdmin) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if n := storetest.Ask[int](t, b.DB, `SELECT count(*) FROM users WHERE role = 'admin' AND disabled_at IS NULL`); n != 1 {
			t.Fatalf("%d admins are left", n)
		}
		if err := b.DB.QueryRow(ctx, `SELECT id FROM users WHERE role = 'admin' AND disabled_at IS NULL`).Scan((*[16]byte)(&ada.ID)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestUsers_LastAdminOfTwo checks that two concurrent changes do not remove both admins.
func TestUsers_LastAdminOfTwo(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	for round := range 5 {
		for b.countAdmins(t) < 2 {
			b.newUser(t, uuid.NewString()+"@x", user.Admin)
		}
		all, err := b.Users(t.Context(), b.TenantID)
		if err != nil {
			t.Fatal(err)
		}
		b.Exec(t, `BEGIN`)
		b.Exec(t, `SELECT FROM users FOR UPDATE`)
		var wg sync.WaitGroup
		for _, u := range all {
			wg.Go(func() {
				if err := b.DeleteUser(t.Context(), nil, b.TenantID, u.ID); err != nil && !errors.Is(err, user.ErrLastAdmin) {
					t.Error(err)
				}
			})
		}
		b.Waiting(t, 2)
		b.Exec(t, `COMMIT`)
		wg.Wait()
		if n := b.countAdmins(t); n != 1 {
			t.Fatalf("round %d: %d admins are left", round, n)
		}
	}
}

func (b *bundle) countAdmins(t testing.TB) int {
	t.Helper()
	return storetest.Ask[int](t, b.DB, `SELECT count(*) FROM users WHERE role = 'admin' AND disabled_at IS NULL`)
}

func TestCreateUser_Most(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			if _, err := b.CreateUser(t.Context(), user.New{Tenant: b.TenantID, Email: fmt.Sprintf("u%d@x", i), Role: user.Viewer, Link: [32]byte{byte(i)}, Most: 3}); err != nil && !errors.Is(err, user.ErrTooMany) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if all, err := b.Users(t.Context(), b.TenantID); err != nil || len(all) != 3 {
		t.Errorf("%d users, %v", len(all), err)
	}
}

// TestCredentials_SeveralTenants checks that users of several tenants may share an email. The password that was set
// last comes first.
func TestCredentials_SeveralTenants(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	ctx := t.Context()
	ada, first := b.newUser(t, "ada@x", user.Admin)
	other, _, err := b.CreateTenant(ctx, "other")
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := b.CreateUser(ctx, user.New{Tenant: other, Email: "ada@x", Role: user.Viewer, Link: [32]byte{9}})
	if err != nil {
		t.Fatal(err)
	}
	credentials := func(tenant string, want ...uuid.UUID) {
		t.Helper()
		var got []uuid.UUID
		found, err := b.Credentials(ctx, "ada@x", tenant)
		for _, c := range found {
			got = append(got, c.ID)
		}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%q: %s, %v", tenant, diff, err)
		}
	}
	for _, row := range []struct {
		link [32]byte
		phc  string
	}{{[32]byte{9}, "$b"}, {first, "$a"}} {
		if _, err := b.SetPassword(ctx, row.link, row.phc); err != nil {
			t.Fatal(err)
		}
	}
	credentials("", ada.ID, theirs.ID)
	credentials("other", theirs.ID)
	credentials(b.TenantID.String(), ada.ID)
	credentials("third")
	if _, err := b.ChangeUser(ctx, nil, other, theirs.ID, user.Change{Disabled: new(true)}); err != nil {
		t.Fatal(err)
	}
	credentials("", ada.ID)
	// A user of another tenant is not found.
	_, link := user.NewLink()
	for _, err := range []error{
		second(b.User(ctx, b.TenantID, theirs.ID)), second(b.ChangeUser(ctx, nil, b.TenantID, theirs.ID, user.Change{})), second(b.LinkUser(ctx, nil, b.TenantID, theirs.ID, link)),
		b.DeleteUser(ctx, nil, b.TenantID, theirs.ID), second(b.Sessions(ctx, nil, b.TenantID, theirs.ID)), second(b.EndSessions(ctx, nil, b.TenantID, theirs.ID, uuid.Nil)),
	} {
		if !errors.Is(err, push.ErrNotFound) {
			t.Errorf("%v", err)
		}
	}
}

func TestUserPage(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	var want, got []string
	for i := range 5 {
		u, _ := b.newUser(t, fmt.Sprintf("u%d@x", i), user.Viewer)
		want = append(want, u.Email)
	}
	for after := new(user.Position); after != nil; {
		page, err := b.UserPage(t.Context(), b.TenantID, *after, 2)
		if err != nil {
			t.Fatal(err)
		}
		for _, u := range page.Users {
			got = append(got, u.Email)
		}
		after = page.Next
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestExternalUser checks that a user follows the provider's role, name and email, and is identified by the subject.
func TestExternalUser(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	ctx := t.Context()
	e := user.External{Tenant: b.TenantID, Issuer: "https://id", Subject: "s1", Email: "ada@x", EmailVerified: true, Name: "Ada", Role: user.Admin, Most: 3}
	ada, err := b.ExternalUser(ctx, e)
	if err != nil || !ada.External || ada.Role != user.Admin || ada.Email != "ada@x" || ada.HasPassword {
		t.Fatalf("%+v, %v", ada, err)
	}
	e.Role, e.Email, e.Name = user.Viewer, "ada@new", "Ada L"
	if u, err := b.ExternalUser(ctx, e); err != nil || u.ID != ada.ID || u.Role != user.Viewer || u.Email != "ada@new" || u.Name != "Ada L" {
		t.Errorf("%+v, %v", u, err)
	}
	e.Email = "ada@newer" // a user with a password signs in with this email
	if _, err := b.ExternalUser(ctx, e); err != nil {
		t.Error(err)
	}
	e.Email = "ada@new"
	if _, err := b.ExternalUser(ctx, e); err != nil {
		t.Error(err)
	}
	if log := storetest.Ask[string](t, b.DB, `SELECT string_agg(action, ' ' ORDER BY created_at) FROM audit_log`); log != "user.create user.change user.change user.change" {
		t.Errorf("the audit log has %s", log)
	}
	// Only a verified address takes over an existing user.
	bea, link := b.newUser(t, "bea@x", user.Editor)
	e2 := user.External{Tenant: b.TenantID, Issuer: "https://id", Subject: "s2", Email: "bea@x", Role: user.Sender, Most: 3}
	if _, err := b.ExternalUser(ctx, e2); !errors.Is(err, user.ErrUnverified) {
		t.Errorf("%v", err)
	}
	e2.EmailVerified = true
	if u, err := b.ExternalUser(ctx, e2); err != nil || u.ID != bea.ID || u.Role != user.Sender || !u.External || u.Name != bea.Name {
		t.Errorf("%+v, %v", u, err)
	}
	if d := storetest.Ask[string](t, b.DB, `SELECT difference::text FROM audit_log ORDER BY created_at DESC LIMIT 1`); !strings.Contains(d, `"external": {"to": true`) {
		t.Errorf("the audit log does not tell that the provider vouches for the user: %s", d)
	}
	// A link that was made for a lower role does not open a higher one.
	if _, err := b.UserByLink(ctx, link); !errors.Is(err, push.ErrNotFound) {
		t.Errorf("the link for an editor opens a sender: %v", err)
	}
	// A user of another subject is not taken over, verified or not. A known user keeps the email if another user has
	// the new one.
	if _, err := b.ExternalUser(ctx, user.External{Tenant: b.TenantID, Issuer: "https://id", Subject: "s3", Email: "bea@x", EmailVerified: true, Role: user.Admin}); !errors.Is(err, user.ErrEmailTaken) {
		t.Errorf("%v", err)
	}
	e.Email, e.EmailVerified = "bea@x", true
	if u, err := b.ExternalUser(ctx, e); err != nil || u.ID != ada.ID || u.Email != "ada@new" {
		t.Errorf("%+v, %v", u, err)
	}
	b.newUser(t, "carl@x", user.Viewer)
	if _, err := b.ExternalUser(ctx, user.External{Tenant: b.TenantID, Issuer: "https://id", Subject: "s4", Email: "d@x", EmailVerified: true, Role: user.Viewer, Most: 3}); !errors.Is(err, user.ErrTooMany) {
		t.Errorf("%v", err)
	}
	if _, err := b.ChangeUser(ctx, nil, b.TenantID, ada.ID, user.Change{Disabled: new(true)}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.ExternalUser(ctx, e); !errors.Is(err, user.ErrDisabled) {
		t.Errorf("%v", err)
	}
}

// TestUsers_CommitUnknown checks that a change whose commit lost its reply is made once and returns no error.
func TestUsers_CommitUnknown(t *testing.T) {
	t.Parallel()
	b, w := throughProxy(t, setupAlone(t))
	ctx := t.Context()
	_, link := user.NewLink()
	w.LoseNext("COMMIT")
	u, err := b.CreateUser(ctx, user.New{Tenant: b.TenantID, Email: "ada@x", Role: user.Viewer, Link: link, Most: 1})
	w.WantLost(t, 1)
	if err != nil {
		t.Fatal(err)
	}
	w.LoseNext("COMMIT")
	_, err = b.SetPassword(ctx, link, "$a")
	w.WantLost(t, 2)
	if err != nil {
		t.Error(err)
	}
	w.LoseNext("COMMIT")
	_, err = b.BeginSession(ctx, b.TenantID, user.NewSession{Hash: [32]byte{1}, User: u.ID, ExpiresAt: time.Now().Add(time.Hour)})
	w.WantLost(t, 3)
	if err != nil {
		t.Error(err)
	}
	w.LoseNext("COMMIT")
	err = b.DeleteUser(ctx, nil, b.TenantID, u.ID)
	w.WantLost(t, 4)
	if err != nil {
		t.Error(err)
	}
}
