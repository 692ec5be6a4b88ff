package frame

import (
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
)

// Visitor is a user who has signed in.
type Visitor struct {
	Caller push.Caller // with the scopes of the role
	Name   string      // to be shown
	Role   string

	Session uuid.UUID // in which the user has signed in, which is no secret
}

// May reports whether the user's role has a scope: what it does not have is not offered.
func (v Visitor) May(scope string) bool { return v.Caller.May(scope) }

// MayWrite and its sisters are for the templates.
func (v Visitor) MayWrite() bool      { return v.May(push.ScopeWrite) }
func (v Visitor) MayCampaigns() bool  { return v.May(push.ScopeCampaignsWrite) }
func (v Visitor) MayPolicy() bool     { return v.May(push.ScopePolicyWrite) }
func (v Visitor) MayKeys() bool       { return v.May(push.ScopeKeysWrite) }
func (v Visitor) MayHooks() bool      { return v.May(push.ScopeHooks) }
func (v Visitor) MayUsers() bool      { return v.May(push.ScopeUsersWrite) }
func (v Visitor) MayRecipients() bool { return v.May(push.ScopeRecipientsWrite) }

// MayDraft and MayStart report whether the role can draft campaigns, and start them.
func (v Visitor) MayDraft() bool { return v.May(push.ScopeCampaignsDraft) }
func (v Visitor) MayStart() bool { return v.May(push.ScopeCampaignsWrite) }
