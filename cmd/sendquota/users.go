package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/config"
	"github.com/sendquota/sendquota/internal/duration"
	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/internal/user"
)

type createUser struct {
	jsonFlag
	Tenant string    `required:"" placeholder:"NAME" help:"Name of the tenant."`
	Email  string    `required:"" placeholder:"ADDRESS" help:"The address for signing in."`
	Role   user.Role `required:"" enum:"viewer,editor,sender,admin" placeholder:"ROLE" help:"The role: viewer, editor, sender or admin."`
	Name   string    `placeholder:"NAME" help:"The name that others see: at most 100 printable bytes. Default: none."`
}

// Validate is called by kong.
func (c createUser) Validate() error {
	var email error
	if _, wrong := user.CleanEmail(c.Email); wrong != "" {
		email = fmt.Errorf("--email %s: %s", brief(c.Email), wrong)
	}
	return errors.Join(email, checkName(c.Name))
}

func (c createUser) Run() error {
	return withStore(func(ctx context.Context, cfg config.Config, st *store.Store) error {
		tenant, err := tenantNamed(ctx, st, c.Tenant)
		if err != nil {
			return err
		}
		email, _ := user.CleanEmail(c.Email)
		token, link := user.NewLink()
		u, err := st.CreateUser(ctx, user.New{Tenant: tenant, Email: email, Name: c.Name, Role: c.Role, Link: link})
		if errors.Is(err, user.ErrEmailTaken) {
			return fmt.Errorf("there is a user %s in this tenant already; see: sendquota users list --tenant %s", email, brief(c.Tenant))
		}
		if err != nil {
			return err
		}
		return c.showLink(cfg, u, token)
	})
}

// showLink prints a link alone on standard output, for scripts, and the user's id on standard error.
func (f jsonFlag) showLink(cfg config.Config, u user.User, token string) error {
	shown := struct {
		userView
		Link string `json:"link"`
	}{userViewOf(u), cfg.ConsoleURL() + user.LinkPath + token}
	if err := f.print(shown, "%s\n", shown.Link); err != nil {
		return fmt.Errorf("the link of user %s could not be printed; for a new one: sendquota users link %[1]s: %w", u.ID, err)
	}
	fmt.Fprintf(os.Stderr, "user %s; the link is shown only once, and can be used once, within %s\n", u.ID, duration.Words(user.LinkLifetime))
	return nil
}

type listUsers struct{ listOfTenant }

func (c listUsers) Run() error {
	return c.withTenant(func(ctx context.Context, st *store.Store, tenant uuid.UUID) error {
		users, err := st.Users(ctx, tenant)
		if err != nil {
			return err
		}
		return printUsers(os.Stdout, c.JSON, users)
	})
}

type userView struct {
	ID           uuid.UUID  `json:"id"`
	Tenant       string     `json:"tenant"`
	Email        string     `json:"email"`
	Name         string     `json:"name"`
	Role         user.Role  `json:"role"`
	HasPassword  bool       `json:"has_password"`
	External     bool       `json:"external"`
	CreatedAt    time.Time  `json:"created_at"`
	DisabledAt   *time.Time `json:"disabled_at"`
	LastSignInAt *time.Time `json:"last_sign_in_at"`
	LinkEndsAt   *time.Time `json:"link_expires_at"`
}

func userViewOf(u user.User) userView {
	return userView{u.ID, u.TenantName, u.Email, u.Name, u.Role, u.HasPassword, u.External, u.CreatedAt, u.DisabledAt, u.LastSignInAt, u.LinkEndsAt}
}

func printUsers(w io.Writer, asJSON bool, users []user.User) error {
	views := make([]userView, len(users))
	for i, u := range users {
		views[i] = userViewOf(u)
	}
	titles := []string{"ID", "TENANT", "EMAIL", "NAME", "ROLE", "CREATED", "LAST SIGN-IN", "DISABLED", "LINK UNTIL"}
	return printList(w, asJSON, "users", views, titles, func(u userView) []string {
		return []string{
			u.ID.String(), u.Tenant, u.Email, cmp.Or(u.Name, "-"), string(u.Role),
			timeOrDash(&u.CreatedAt), timeOrDash(u.LastSignInAt), timeOrDash(u.DisabledAt), timeOrDash(u.LinkEndsAt),
		}
	})
}

type linkUser struct {
	jsonFlag
	ID uuid.UUID `arg:"" help:"The user's id, as sendquota users list shows it."`
}

func (c linkUser) Run() error {
	return withStore(func(ctx context.Context, cfg config.Config, st *store.Store) error {
		token, link := user.NewLink()
		u, err := st.LinkUser(ctx, nil, uuid.Nil, c.ID, link)
		switch {
		case errors.Is(err, user.ErrDisabled):
			return fmt.Errorf("the user %s is disabled; see: sendquota users disable --enable", c.ID)
		case errors.Is(err, user.ErrExternal):
			return fmt.Errorf("%w: %s; the setting console.external_passwords allows them", user.ErrExternal, c.ID)
		case err != nil:
			return about("user", c.ID, err)
		}
		return c.showLink(cfg, u, token)
	})
}

type disableUser struct {
	jsonFlag
	ID     uuid.UUID `arg:"" help:"The user's id, as sendquota users list shows it."`
	Enable bool      `help:"Permit the user to sign in again."`
}

func (c disableUser) Run() error {
	return withStore(func(ctx context.Context, _ config.Config, st *store.Store) error {
		u, err := st.User(ctx, uuid.Nil, c.ID)
		if err != nil {
			return about("user", c.ID, err)
		}
		off := !c.Enable
		changed, err := st.ChangeUser(ctx, nil, u.Tenant, c.ID, user.Change{Disabled: &off})
		if errors.Is(err, user.ErrLastAdmin) {
			return fmt.Errorf("the user %s is the last admin of the tenant %s; make another one first: sendquota users create --role admin", c.ID, u.TenantName)
		}
		if err != nil {
			return about("user", c.ID, err)
		}
		return c.print(userViewOf(changed), "user %s %s\n", c.ID, map[bool]string{true: "is disabled, and signed out everywhere", false: "may sign in"}[off])
	})
}
