package system

import (
	"errors"
	"net/url"
	"slices"

	"github.com/sendquota/sendquota/internal/console/frame"

	"github.com/sendquota/sendquota/client"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/user"
)

// usersView is the list of users, and one that was just made.
type usersView struct {
	client.UsersPage
	Made *client.User // with its link, which is shown this once
}

func readUsers(p *frame.Page) (*usersView, error) {
	view := &usersView{}
	query := url.Values{"page_size": {"100"}}
	if token := p.Query("page_token"); token != "" {
		query.Set("page_token", token)
	}
	return view, p.API.Get(p.Context(), "/v1/users", query, &view.UsersPage)
}

func showUsers(p *frame.Page) error {
	view, err := readUsers(p)
	if err != nil {
		return err
	}
	return p.Show("settingsusers", "Users", view)
}

// createUser makes a user, and shows the link in the answer itself: it is stored nowhere to be shown again.
func createUser(p *frame.Page) error {
	made, failed := p.API.Users.Create(p.Context(), client.NewUser{Email: p.Field("email"), Name: p.Field("name"), Role: client.NewUserRole(p.Field("role"))})
	view, err := readUsers(p)
	if err != nil {
		return err
	}
	if failed != nil {
		var problem *client.Problem
		if errors.As(failed, &problem) && problem.Name() == "email-taken" {
			failed = &client.Invalid{Problem: *problem, Errors: []client.Fault{{Location: "body.email", Message: "another user of the team has this e-mail address"}}}
		}
		return p.ShowAgain(failed, "settingsusers", "Users", view)
	}
	view.Made, p.Request.PostForm = &made, nil // the form is for another one
	return p.Show("settingsusers", "Users", view)
}

// role is one that a user can have.
type role struct {
	Name  user.Role
	Words string
}

// roleWords describes the rights of each role.
var roleWords = map[user.Role]string{
	user.Viewer: "can view everything; addresses are hidden",
	user.Editor: "can also draft campaigns and edit recipients and the policy; cannot send, but a new address also applies to scheduled messages",
	user.Sender: "can also send, move, cancel and stop sending",
	user.Admin:  "can do everything, including API keys and users",
}

// roles returns the roles that this user can give: they have no scope that the user lacks.
func roles(p *frame.Page) []role {
	var all []role
	for _, name := range user.Roles {
		if !slices.ContainsFunc(name.Scopes(), func(scope string) bool { return !p.May(scope) }) {
			all = append(all, role{name, roleWords[name]})
		}
	}
	return all
}

// userView is one user, with where the user is signed in.
type userView struct {
	client.User
	Sessions []client.Session
	See      bool // the sessions may be seen
}

// Title returns the name of the user, or the e-mail address.
func (v *userView) Title() string {
	if v.Name == "" {
		return v.Email
	}
	return v.Name
}

// oneself reports whether a user is the one who looks.
func oneself(p *frame.Page, id string) bool { return id == p.Visitor.Caller.User.String() }

// readUser reads a user; what is shown once was just made, and stands in made.
func readUser(p *frame.Page, made *client.User) (*userView, error) {
	id := p.Param("id")
	view := &userView{See: oneself(p, id) || p.May(push.ScopeUsersWrite)}
	var err error
	if made != nil {
		view.User = *made
	} else if view.User, err = p.API.Users.Get(p.Context(), id); err != nil {
		return nil, err
	}
	if view.See {
		all, err := p.API.Users.ListSessions(p.Context(), id)
		if err != nil {
			return nil, err
		}
		view.Sessions = all.Sessions
	}
	return view, nil
}

func showUser(p *frame.Page) error {
	view, err := readUser(p, nil)
	if err != nil {
		return err
	}
	return p.Show("settingsuser", view.Title(), view)
}

// userChange returns the changed fields of the form. Fields that still have the shown value are left out, because another user may have
// changed them since.
func userChange(p *frame.Page) (c client.UserChange) {
	if name := p.Field("name"); name != p.Field("was_name") {
		c.Name = &name
	}
	if role := client.UserChangeRole(p.Field("role")); string(role) != p.Field("was_role") {
		c.Role = &role
	}
	return c
}

// actOnUser does one of the things that buttons of a user's page do.
func actOnUser(p *frame.Page) error {
	var (
		id          = p.Param("id")
		back        = p.Link("/settings/users/" + frame.PathPart(id))
		yes, no     = true, false
		notice, err = "", error(nil)
	)
	switch p.Field("do") {
	case "change":
		notice = "User saved. The change applies from the next page that the user opens."
		_, err = p.API.Users.Change(p.Context(), id, userChange(p))
	case "disable":
		notice = "User disabled and signed out everywhere."
		_, err = p.API.Users.Change(p.Context(), id, client.UserChange{Disabled: &yes})
	case "enable":
		notice = "User enabled."
		_, err = p.API.Users.Change(p.Context(), id, client.UserChange{Disabled: &no})
	case "delete":
		notice, back = "User deleted and signed out everywhere.", p.Link("/settings/users")
		err = p.API.Users.Delete(p.Context(), id)
	case "end":
		notice, err = endSession(p, id, p.Field("session"))
	case "end-all":
		notice, err = endSessions(p, id)
	case "link":
		var made client.User
		if made, err = p.API.Users.Link(p.Context(), id); err == nil {
			view, err := readUser(p, &made)
			if err != nil {
				return err
			}
			return p.Show("settingsuser", view.Title(), view)
		}
	}
	if err == nil {
		return p.Done(notice, back)
	}
	view, found := readUser(p, nil)
	if found != nil {
		return found
	}
	return p.ShowAgain(err, "settingsuser", view.Title(), view)
}
