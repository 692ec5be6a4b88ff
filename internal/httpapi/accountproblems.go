package httpapi

import (
	"errors"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/user"
)

// The problems with API keys and users. Clients know them by their names.
var (
	tooManyKeys  = newKind("too-many-keys", 409, "Too many keys", "The tenant has the maximum number of live API keys; revoke one first.")
	notRotatable = newKind("not-rotatable", 409, "Not rotatable", "The API key has ended, or is one of the two live keys of an earlier rotation; detail names the reason.")
	ownKey       = newKind("own-key", 409, "Own key", "The API key of the request would revoke itself; self=true allows that.")
	tooManyUsers = newKind("too-many-users", 409, "Too many users", "The tenant has the maximum number of users; delete one first.")
	emailTaken   = newKind("email-taken", 409, "Email taken", "Another user of the tenant signs in with this email.")
	lastAdmin    = newKind("last-admin", 409, "Last admin", "The user is the only admin who is not disabled; make another admin first.")
	userDisabled = newKind("user-disabled", 409, "User disabled", "The user is disabled; enable the user first.")
	userExternal = newKind("user-external", 409, "User external", "The user signs in through the OIDC provider, and can have neither links nor a password unless the operator allows them.")
)

// accountProblemOf returns the problem for an error about API keys or users, or nil.
func accountProblemOf(err error) problemer {
	if replaced, ok := errors.AsType[*push.ReplacedError](err); ok {
		p := notRotatable.because(replaced.Error())
		return &p
	}
	return plainProblem(err, plainAccountProblems)
}

var plainAccountProblems = []plain{
	plainOf(push.ErrTooManyKeys, tooManyKeys, "the tenant has the maximum number of live API keys; revoke one first"),
	plainOf(push.ErrKeyOver, notRotatable, push.ErrKeyOver.Error()),
	plainOf(user.ErrTooMany, tooManyUsers, "the tenant has the maximum number of users; delete one first"),
	plainOf(user.ErrEmailTaken, emailTaken, user.ErrEmailTaken.Error()),
	plainOf(user.ErrLastAdmin, lastAdmin, user.ErrLastAdmin.Error()+"; make another admin first"),
	plainOf(user.ErrExternal, userExternal, user.ErrExternal.Error()),
	plainOf(user.ErrDisabled, userDisabled, "the user is disabled; enable the user first"),
}
