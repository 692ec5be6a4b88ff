package frame

import (
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
)

// Visitor is a user who has signed in.
type Visitor struct {
	Caller push.Caller // with the scopes of the role
	Name   string      // for display
	Role   string

	Session uuid.UUID // id of the session, which is not a secret
}

// May reports whether the user's role has a scope. Pages do not offer actions without it.
func (v Visitor) May(scope string) bool { return v.Caller.May(scope) }

// MayWrite and the following methods are for templates.
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
