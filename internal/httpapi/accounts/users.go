package accounts

import (
	"context"
	"net/http"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/rest"
	"github.com/sendquota/sendquota/internal/user"
)

// UsersPath is the path of the users.
const UsersPath = "/v1/users"

// Users keeps the users of the console. Another tenant's user is [push.ErrNotFound]. The caller by must have every scope of the user's
// role; otherwise the error is a [*push.ScopeError].
type Users interface {
	userLinks
	userChanger
	userSessions
}

// userLinks makes users and their links.
type userLinks interface {
	CreateUser(ctx context.Context, n user.New) (user.User, error)
	LinkUser(ctx context.Context, by *push.Caller, tenant, id uuid.UUID, link [32]byte) (user.User, error)
}

// userChanger reads, changes and deletes users.
type userChanger interface {
	User(ctx context.Context, tenant, id uuid.UUID) (user.User, error)
	UserPage(ctx context.Context, tenant uuid.UUID, after user.Position, limit int) (user.Page, error)
	ChangeUser(ctx context.Context, by *push.Caller, tenant, id uuid.UUID, change user.Change) (user.User, error)
	DeleteUser(ctx context.Context, by *push.Caller, tenant, id uuid.UUID) error
}

// userSessions reads and ends the sessions of users.
type userSessions interface {
	Sessions(ctx context.Context, by *push.Caller, tenant, of uuid.UUID) ([]user.Session, error)
	EndSessions(ctx context.Context, by *push.Caller, tenant, of, session uuid.UUID) (ended int, err error)
}

// userView is a user of the console as the API shows it.
type userView struct {
	ID            string    `json:"id" format:"uuid"`
	Email         string    `json:"email" doc:"The sign-in name, in lower case."`
	Name          string    `json:"name" doc:"Empty: no name."`
	Role          user.Role `json:"role" enum:"viewer,editor,sender,admin"`
	HasPassword   bool      `json:"has_password" doc:"false: the user has not used a link yet, signs in through the OIDC provider, or got a role that ended the password."`
	External      bool      `json:"external" doc:"The user signs in through the OIDC provider, which sets the role at each sign-in."`
	Disabled      bool      `json:"disabled"`
	DisabledAt    *string   `json:"disabled_at" format:"date-time" nullable:"true"`
	CreatedAt     string    `json:"created_at" format:"date-time"`
	LastSignInAt  *string   `json:"last_sign_in_at" format:"date-time" nullable:"true" doc:"null: never."`
	LinkExpiresAt *string   `json:"link_expires_at" format:"date-time" nullable:"true" doc:"The end of the last link; null: there is none, or it was used."`
	Link          string    `json:"link,omitempty" doc:"The URL at which the user sets a password, once. Returned only when a user or a link is created: it gives access to the account."`
}

type usersView struct {
	Users         []userView `json:"users" doc:"The oldest first."`
	NextPageToken string     `json:"next_page_token" doc:"The page_token of the next page; empty only at the end of the list."`
}

// userViewOf shows a user, without a link.
func userViewOf(u user.User) userView {
	return userView{
		ID: u.ID.String(), Email: u.Email, Name: u.Name, Role: u.Role, HasPassword: u.HasPassword, External: u.External, Disabled: u.DisabledAt != nil, DisabledAt: rest.MaybePast(u.DisabledAt),
		CreatedAt: rest.Stamp(u.CreatedAt), LastSignInAt: rest.MaybePast(u.LastSignInAt), LinkExpiresAt: rest.MaybePast(u.LinkEndsAt),
	}
}

// userForm is a user in a request.
type userForm struct {
	email, name string
	role        user.Role
}

// role is one of a user's roles.
func role[T any](set func(*T, user.Role)) rest.Value[T] { return rest.OneOf(set, user.Roles...) }

// emailAddress reads a sign-in name.
func emailAddress[T any](set func(*T, string)) rest.Value[T] {
	return rest.Scalar(set, rest.TextSchema(3, user.MaxEmail), user.CleanEmail)
}

const roleMeaning = "The rights of the user: viewer (read everything except addresses), editor (also draft campaigns, describe recipients and change the policy), sender (also send), admin (everything)."

var userFields = rest.Table[userForm]{SchemaName: "NewUser", Fields: []rest.Field[userForm]{
	rest.Row("email", rest.Required, emailAddress(func(f *userForm, s string) { f.email = s }), "The sign-in name. Case is ignored.", "ada@example.com"),
	rest.Row("role", rest.Required, role(func(f *userForm, r user.Role) { f.role = r }), roleMeaning, nil),
	rest.Row("name", rest.Optional, rest.Text(func(f *userForm, s string) { f.name = s }, 0, user.MaxName), "The name that others see. Default: none.", "Ada Lovelace"),
}}

var userChanges = rest.Table[user.Change]{SchemaName: "UserChange", Fields: []rest.Field[user.Change]{
	rest.Row("role", rest.Optional, role(func(c *user.Change, r user.Role) { c.Role = &r }), roleMeaning, nil),
	rest.Row("name", rest.Optional, rest.Text(func(c *user.Change, s string) { c.Name = &s }, 0, user.MaxName), "The name that others see.", "Ada Lovelace"),
	rest.Row("disabled", rest.Optional, rest.Boolean(func(c *user.Change, is bool) { c.Disabled = &is }), "A disabled user is signed out immediately, and cannot sign in.", nil),
}}

func (h *users) createUser(c *rest.Call) error {
	var f userForm
	if err := userFields.ReadBody(c, &f, &c.Errors); err != nil {
		return err
	}
	token, link := user.NewLink()
	u, err := h.store.CreateUser(c.Request.Context(), user.New{Tenant: c.Caller.Tenant, Email: f.email, Name: f.name, Role: f.role, Link: link, Most: h.most, By: &c.Caller})
	if err != nil {
		return err
	}
	c.Header("Location", UsersPath+"/"+u.ID.String())
	return h.answerLink(c, http.StatusCreated, u, token)
}

// answerLink answers with a user and the link with this token, which is shown only once.
func (h *users) answerLink(c *rest.Call, status int, u user.User, token string) error {
	v := userViewOf(u)
	v.Link = h.publicURL + user.LinkPath + token
	return c.Answer(status, v)
}

var usersParams = rest.Pages[rest.PageParams]()

// listUsers answers with a page of the tenant's users.
func (h *users) listUsers(c *rest.Call) error {
	return rest.List(c, &usersParams, func(q rest.PageParams, after user.Position) ([]user.User, *user.Position, error) {
		page, err := h.store.UserPage(c.Request.Context(), c.Caller.Tenant, after, q.Size)
		return page.Users, page.Next, err
	}, func(all []user.User, next string) any { return usersView{rest.ViewsOf(all, userViewOf), next} })
}

func (h *users) getUser(c *rest.Call) error {
	return c.ByID("user", func(ctx context.Context, tenant, id uuid.UUID) (any, error) {
		u, err := h.store.User(ctx, tenant, id)
		return userViewOf(u), err
	})
}

func (h *users) changeUser(c *rest.Call) error {
	var change user.Change
	if err := userChanges.ReadBody(c, &change, &c.Errors); err != nil {
		return err
	}
	u, err := h.store.ChangeUser(c.Request.Context(), &c.Caller, c.Caller.Tenant, c.ID, change)
	if err != nil {
		return rest.NoSuch("user", err)
	}
	return c.Answer(http.StatusOK, userViewOf(u))
}

func (h *users) linkUser(c *rest.Call) error {
	token, link := user.NewLink()
	u, err := h.store.LinkUser(c.Request.Context(), &c.Caller, c.Caller.Tenant, c.ID, link)
	if err != nil {
		return rest.NoSuch("user", err)
	}
	return h.answerLink(c, http.StatusCreated, u, token)
}

func (h *users) deleteUser(c *rest.Call) error {
	return c.ByID("user", func(ctx context.Context, tenant, id uuid.UUID) (any, error) {
		return nil, h.store.DeleteUser(ctx, &c.Caller, tenant, id)
	})
}
