package user

import (
	"slices"
	"strings"

	"github.com/sendquota/sendquota/internal/push"
)

// Role says what a user may do: it stands for scopes of the REST API.
type Role string

// The roles, the least mighty first.
const (
	Viewer Role = "viewer" // sees everything but addresses, keys' secrets and webhooks
	Editor Role = "editor" // also drafts campaigns, describes recipients and changes the policy; sends nothing
	Sender Role = "sender" // also submits, moves and cancels, starts campaigns and schedules
	Admin  Role = "admin"  // may do everything, keys and users included
)

// Roles lists all roles, the least mighty first.
var Roles = []Role{Viewer, Editor, Sender, Admin}

// Scopes are what the REST API allows a user of the role: nothing, if there is no such role.
func (r Role) Scopes() []string {
	var all []string
	switch r {
	case Admin:
		return slices.Clone(push.Scopes)
	case Sender:
		all = append(all, push.ScopeWrite, push.ScopeLimits, push.ScopeCampaignsWrite)
		fallthrough
	case Editor:
		all = append(all, push.ScopeCampaignsDraft, push.ScopeRecipientsWrite, push.ScopePolicyWrite)
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

// Masked reports whether the role sees addresses of recipients only in part.
func (r Role) Masked() bool { return r == Viewer }

// Mightier returns the mightier of two roles; "" is no role.
func Mightier(a, b Role) Role {
	if slices.Index(Roles, a) >= slices.Index(Roles, b) {
		return a
	}
	return b
}

// Caller is the user as the REST API knows its callers.
func (u *User) Caller() push.Caller {
	return push.Caller{Tenant: u.Tenant, Scopes: u.Role.Scopes(), User: u.ID, Masked: u.Role.Masked(), Caps: u.OwnCaps}
}
