// Package accounts has the operations of the REST API on API keys, and on the users of the console and their sessions.
package accounts

import (
	"errors"
	"slices"

	"github.com/sendquota/sendquota/internal/apikey"
	"github.com/sendquota/sendquota/internal/rest"
	"github.com/sendquota/sendquota/internal/user"
)

// The groups of these operations in the documentation.
const (
	TagKeys  = "Keys"
	TagUsers = "Users"
)

// keys serves the API keys of tenants.
type keys struct {
	ring Keys
	most int // live keys of a tenant
}

// users serves the users of the console and their sessions.
type users struct {
	store     Users
	most      int    // users of a tenant; 0: no limit
	publicURL string // of the console, without a path
}

// Operations returns the operations on API keys and users. A tenant can have maxKeys live keys and maxUsers users, 0 for no
// limit of users. The console is at publicURL, which has no path.
func Operations(s *rest.Spec, ring Keys, maxKeys int, store Users, maxUsers int, publicURL string) []rest.Operation {
	u := &users{store, maxUsers, publicURL}
	return slices.Concat((&keys{ring, maxKeys}).routes(s), u.routes(s), u.sessionRoutes(s))
}

// The problems with API keys and users. Clients know them by their names.
var (
	TooManyKeys  = rest.NewKind("too-many-keys", 409, "Too many keys", "The tenant has the maximum number of live API keys; revoke one first.")
	NotRotatable = rest.NewKind("not-rotatable", 409, "Not rotatable", "The API key has ended, or is one of the two live keys of an earlier rotation; detail names the reason.")
	OwnKey       = rest.NewKind("own-key", 409, "Own key", "The API key of the request would revoke itself; self=true allows that.")
	TooManyUsers = rest.NewKind("too-many-users", 409, "Too many users", "The tenant has the maximum number of users; delete one first.")
	EmailTaken   = rest.NewKind("email-taken", 409, "Email taken", "Another user of the tenant signs in with this email.")
	LastAdmin    = rest.NewKind("last-admin", 409, "Last admin", "The user is the only admin who is not disabled; make another admin first.")
	UserDisabled = rest.NewKind("user-disabled", 409, "User disabled", "The user is disabled; enable the user first.")
	UserExternal = rest.NewKind("user-external", 409, "User external", "The user signs in through the OIDC provider, and can have neither links nor a password unless the operator allows them.")
)

// ProblemOf returns the problem for an error about API keys or users, or nil.
func ProblemOf(err error) rest.Problemer {
	if replaced, ok := errors.AsType[*apikey.ReplacedError](err); ok {
		p := NotRotatable.Because(replaced.Error())
		return &p
	}
	return rest.PlainProblem(err, plainAccountProblems)
}

var plainAccountProblems = []rest.Plain{
	rest.PlainOf(apikey.ErrTooMany, TooManyKeys, "the tenant has the maximum number of live API keys; revoke one first"),
	rest.PlainOf(apikey.ErrOver, NotRotatable, apikey.ErrOver.Error()),
	rest.PlainOf(user.ErrTooMany, TooManyUsers, "the tenant has the maximum number of users; delete one first"),
	rest.PlainOf(user.ErrEmailTaken, EmailTaken, user.ErrEmailTaken.Error()),
	rest.PlainOf(user.ErrLastAdmin, LastAdmin, user.ErrLastAdmin.Error()+"; make another admin first"),
	rest.PlainOf(user.ErrExternal, UserExternal, user.ErrExternal.Error()),
	rest.PlainOf(user.ErrDisabled, UserDisabled, "the user is disabled; enable the user first"),
}
