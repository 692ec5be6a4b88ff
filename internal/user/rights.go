package user

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sendquota/sendquota/internal/push"
)

// CheckRole returns a [*push.ScopeError] unless the caller has every scope of a role. A nil caller is the operator, who
// has every scope.
func CheckRole(by *push.Caller, role Role) error {
	if by == nil {
		return nil
	}
	if lacks := by.Lacks(role.Scopes()); len(lacks) > 0 {
		return &push.ScopeError{Scope: lacks[0], Detail: fmt.Sprintf("the role %s has scopes that the caller lacks: %s", role, strings.Join(lacks, ", "))}
	}
	return nil
}

// CheckSessions is [CheckRole] for the sessions of a user. Users may always see and end their own sessions.
func CheckSessions(by *push.Caller, u User) error {
	if by != nil && by.User == u.ID {
		return nil
	}
	return CheckRole(by, u.Role)
}

// MaxRole returns the highest role that a caller may assign; "": none.
func MaxRole(by *push.Caller) (most Role) {
	for _, role := range Roles {
		if CheckRole(by, role) == nil {
			most = role
		}
	}
	return most
}

// AtLeast returns this role and all higher ones.
func (r Role) AtLeast() []Role { return Roles[slices.Index(Roles, r):] }
