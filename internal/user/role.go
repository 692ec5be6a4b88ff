package user

import (
	"slices"
	"strings"

	"github.com/sendquota/sendquota/internal/push"
)

// Role is a set of scopes of the REST API that a user has.
type Role string

// The roles, the lowest first.
const (
	Viewer Role = "viewer" // reads everything except addresses, keys' secrets and webhooks
	Editor Role = "editor" // also drafts campaigns, describes recipients and changes the policy; sends nothing
	Sender Role = "sender" // also submits, moves and cancels, starts campaigns and schedules, pauses sending
	Admin  Role = "admin"  // has all rights, also for keys and users
)

// Roles lists all roles, the lowest first.
var Roles = []Role{Viewer, Editor, Sender, Admin}

// Scopes returns the scopes of the role; nil for an unknown role.
func (r Role) Scopes() []string {
	var all []string
	switch r {
	case Admin:
		return slices.Clone(push.Scopes)
	case Sender:
		all = append(all, push.ScopeWrite, push.ScopeLimits, push.ScopeCampaignsWrite, push.ScopePausesWrite)
		fallthrough
	case Editor:
		all = append(all, push.ScopeCampaignsDraft, push.ScopeRecipientsWrite, push.ScopePolicyWrite, push.ScopeSuppressionsWrite)
		fallthrough
	case Viewer:
		for _, scope := range push.Scopes {
			if strings.HasSuffix(scope, ":read") {
				all = append(all, scope)
			}
		}
	}
	return all
}

// Masked reports whether the role sees only parts of recipients' addresses.
func (r Role) Masked() bool { return r == Viewer }

// Higher returns the higher of two roles; "" is lower than all.
func Higher(a, b Role) Role {
	if slices.Index(Roles, a) >= slices.Index(Roles, b) {
		return a
	}
	return b
}

// Caller returns the user as a caller of the REST API.
func (u *User) Caller() push.Caller {
	return push.Caller{Tenant: u.Tenant, Scopes: u.Role.Scopes(), User: u.ID, Masked: u.Role.Masked(), Caps: u.OwnCaps}
}
