package accounts_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/auditlog"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/user"
)

// writerWith returns a caller that may write users, and has the scopes of a role.
func writerWith(role user.Role) *push.Caller {
	return &push.Caller{Key: uuid.New(), Scopes: append(role.Scopes(), push.ScopeUsersWrite)}
}

// TestUsers_RoleUnderTheLock checks that a caller needs the scopes of the role that a user has at the time of the
// change, not of the role before a concurrent raise.
func TestUsers_RoleUnderTheLock(t *testing.T) {
	t.Parallel()
	viewer, name := user.Viewer, "x"
	for what, act := range map[string]func(b *bundle, by *push.Caller, id uuid.UUID) error{
		"link": func(b *bundle, by *push.Caller, id uuid.UUID) error {
			_, link := user.NewLink()
			return second(b.LinkUser(t.Context(), by, b.TenantID, id, link))
		},
		"rename": func(b *bundle, by *push.Caller, id uuid.UUID) error {
			return second(b.ChangeUser(t.Context(), by, b.TenantID, id, user.Change{Name: &name}))
		},
		"lower": func(b *bundle, by *push.Caller, id uuid.UUID) error {
			return second(b.ChangeUser(t.Context(), by, b.TenantID, id, user.Change{Role: &viewer}))
		},
		"disable": func(b *bundle, by *push.Caller, id uuid.UUID) error {
			return second(b.ChangeUser(t.Context(), by, b.TenantID, id, user.Change{Disabled: new(true)}))
		},
		"enable": func(b *bundle, by *push.Caller, id uuid.UUID) error {
			return second(b.ChangeUser(t.Context(), by, b.TenantID, id, user.Change{Disabled: new(false)}))
		},
		"delete": func(b *bundle, by *push.Caller, id uuid.UUID) error {
			return b.DeleteUser(t.Context(), by, b.TenantID, id)
		},
		"sign out": func(b *bundle, by *push.Caller, id uuid.UUID) error {
			return second(b.EndSessions(t.Context(), by, b.TenantID, id, uuid.Nil))
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			b := setupAlone(t)
			b.newUser(t, "last@x", user.Admin)
			bea, _ := b.newUser(t, "bea@x", user.Viewer)
			b.begin(t, bea, 1)
			by := writerWith(user.Viewer)
			b.Exec(t, `BEGIN`)
			b.Exec(t, `UPDATE users SET role = 'admin' WHERE id = $1`, bea.ID)
			done := make(chan error)
			go func() { done <- act(b, by, bea.ID) }()
			b.Waiting(t, 1)
			b.Exec(t, `COMMIT`)
			lacks := (*push.ScopeError)(nil)
			if err := <-done; !errors.As(err, &lacks) || !strings.Contains(lacks.Detail, "the role admin") || !strings.Contains(lacks.Detail, push.ScopeKeysWrite) {
				t.Errorf("%v", err)
			}
			if u, err := b.User(t.Context(), b.TenantID, bea.ID); err != nil || u.Role != user.Admin || u.DisabledAt != nil || u.Name != bea.Name || !b.goesOn(t, 1) {
				t.Errorf("%+v, %v", u, err)
			}
		})
	}
}

// TestSetPassword_LinkActs checks that the audit log names the link that set a password, and that the entry of the
// link's maker has the same id.
func TestSetPassword_LinkActs(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	ctx := t.Context()
	ada, link := b.newUser(t, "ada@x", user.Viewer)
	for _, action := range []auditlog.Action{auditlog.UserCreate, auditlog.UserLink} {
		if action == auditlog.UserLink {
			_, link = user.NewLink()
			if _, err := b.LinkUser(ctx, writerWith(user.Viewer), b.TenantID, ada.ID, link); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := b.SetPassword(ctx, link, "$a"); err != nil {
			t.Fatal(err)
		}
		set := b.Entries(t, auditlog.Filter{ActorType: push.ActorLink, Actor: user.LinkID(link)})
		if len(set) != 1 || set[0].Action != auditlog.UserChange || set[0].Target != ada.ID.String() || set[0].ActorName != "" {
			t.Fatalf("%s: %+v", action, set)
		}
		made := b.Entries(t, auditlog.Filter{Action: action})
		if len(made) != 1 || !strings.Contains(string(made[0].Difference), set[0].Actor.ID.String()) {
			t.Errorf("%+v", made)
		}
	}
}

// TestSessions_RoleNow checks that a caller needs the scopes of another user's role for that user's sessions, and none
// for their own.
func TestSessions_RoleNow(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	ada, _ := b.newUser(t, "ada@x", user.Admin)
	b.begin(t, ada, 1)
	own := writerWith(user.Viewer)
	own.User = ada.ID // a viewer when the request began
	for _, by := range []*push.Caller{writerWith(user.Sender), own, nil} {
		all, read := b.Sessions(t.Context(), by, b.TenantID, ada.ID)
		n, ended := b.EndSessions(t.Context(), by, b.TenantID, ada.ID, uuid.New())
		for _, err := range []error{read, ended} {
			if lacks := (*push.ScopeError)(nil); errors.As(err, &lacks) != (by != nil && by != own) || lacks == nil && err != nil {
				t.Errorf("%v: %v", by, err)
			}
		}
		if (len(all) == 1) != (read == nil) || n != 0 {
			t.Errorf("%v: %+v, %d", by, all, n)
		}
	}
}

// TestChangeUser_PasswordOfALesserLink checks that a role that the maker of a link could not give ends the password
// that the link set, because the maker may know it. It ends the sessions of that password, too, even if the user had
// that role before.
func TestChangeUser_PasswordOfALesserLink(t *testing.T) {
	t.Parallel()
	viewer, editor, admin := user.Viewer, user.Editor, user.Admin
	for _, row := range []struct {
		name string
		by   *push.Caller
		to   *user.Role
		ends bool
	}{
		{"raised beyond", writerWith(user.Viewer), &editor, true}, {"raised far beyond", writerWith(user.Editor), &admin, true}, {"raised to what the maker has", writerWith(user.Editor), &editor, false},
		{"linked by an admin", &push.Caller{Scopes: push.Scopes}, &admin, false}, {"linked by the operator", nil, &admin, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			b := setupAlone(t)
			ctx := t.Context()
			b.newUser(t, "last@x", user.Admin)
			ada, _ := b.newUser(t, "ada@x", user.Admin)
			change := func(by *push.Caller, role *user.Role) {
				t.Helper()
				if _, err := b.ChangeUser(ctx, by, b.TenantID, ada.ID, user.Change{Role: role}); err != nil {
					t.Fatal(err)
				}
			}
			change(nil, &viewer)
			_, link := user.NewLink()
			if _, err := b.LinkUser(ctx, row.by, b.TenantID, ada.ID, link); err != nil {
				t.Fatal(err)
			}
			if _, err := b.SetPassword(ctx, link, "$a"); err != nil {
				t.Fatal(err)
			}
			if _, err := b.BeginSession(ctx, b.TenantID, user.NewSession{Hash: [32]byte{1}, User: ada.ID, Password: "$a", ExpiresAt: time.Now().Add(time.Hour)}); err != nil {
				t.Fatal(err)
			}
			change(nil, row.to)
			u, err := b.User(ctx, b.TenantID, ada.ID)
			if err != nil || u.HasPassword == row.ends || b.goesOn(t, 1) == row.ends {
				t.Errorf("%+v, %v", u, err)
			}
			_, err = b.BeginSession(ctx, b.TenantID, user.NewSession{Hash: [32]byte{2}, User: ada.ID, Password: "$a", ExpiresAt: time.Now().Add(time.Hour)})
			if errors.Is(err, push.ErrNotFound) != row.ends {
				t.Errorf("the password begins a session: %v", err)
			}
		})
	}
}
