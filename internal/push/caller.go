package push

import (
	"slices"
	"time"

	"github.com/google/uuid"
)

// Caller is the holder of an API key, or a user of the console: a tenant, and what the key or the role allows.
type Caller struct {
	Tenant uuid.UUID
	Scopes []string
	Caps   OwnCaps

	Key    uuid.UUID     // the id of the API key, which is no secret; Nil: a user calls
	User   uuid.UUID     // of the console; Nil: an API key calls
	Masked bool          // sees of addresses only what tells them apart
	Left   time.Duration // how long the key was still valid when it was looked up; 0: for ever
	Unseen bool          // the key's use has not been recorded for a minute
}

// The scopes of API keys.
const (
	ScopeWrite  = "pushes:write"    // submit, cancel, reschedule
	ScopeRead   = "pushes:read"     // read and list pushes
	ScopeQuota  = "quota:read"      // check quotas, see bookings
	ScopeLimits = "limits:take"     // take from speed limits
	ScopeHooks  = "webhooks:manage" // make, test and remove webhooks, see and repeat what they were sent

	ScopeRecipientsRead  = "recipients:read"  // read what is said of recipients, and their timelines
	ScopeRecipientsWrite = "recipients:write" // describe, import and erase recipients; includes reading

	ScopePolicyRead  = "policy:read"  // see the policy, its versions and what its shadow rules count
	ScopePolicyWrite = "policy:write" // change the policy, but not what is booked; includes policy:read

	ScopeCampaignsRead  = "campaigns:read"  // see campaigns and schedules
	ScopeCampaignsDraft = "campaigns:draft" // make, change and remove drafts of campaigns that no schedule copies; includes campaigns:read
	ScopeCampaignsWrite = "campaigns:write" // also start and stop them, and keep schedules and what these copy; includes both others

	ScopeRecordsRead = "records:read" // see sends, refusals, statistics, audits and the audit log

	ScopeKeysRead  = "keys:read"  // list API keys, without their secrets
	ScopeKeysWrite = "keys:write" // make, rotate and revoke them; includes keys:read

	ScopeUsersRead  = "users:read"  // list the users of the console
	ScopeUsersWrite = "users:write" // make, change and remove them, see and end their sessions; includes users:read
)

// Scopes lists all scopes; a key made without a choice has them all.
var Scopes = []string{
	ScopeWrite, ScopeRead, ScopeQuota, ScopeLimits, ScopeHooks, ScopeRecipientsRead, ScopeRecipientsWrite,
	ScopePolicyRead, ScopePolicyWrite, ScopeCampaignsRead, ScopeCampaignsDraft, ScopeCampaignsWrite, ScopeRecordsRead, ScopeKeysRead, ScopeKeysWrite,
	ScopeUsersRead, ScopeUsersWrite,
}

// includes are the scopes of which each includes another one.
var includes = map[string][]string{
	ScopeRecipientsRead: {ScopeRecipientsWrite}, ScopePolicyRead: {ScopePolicyWrite}, ScopeKeysRead: {ScopeKeysWrite}, ScopeUsersRead: {ScopeUsersWrite},
	ScopeCampaignsRead: {ScopeCampaignsDraft, ScopeCampaignsWrite}, ScopeCampaignsDraft: {ScopeCampaignsWrite},
}

// ScopeError says that a change needs a scope that its caller lacks. The transaction that makes the change returns it where only that
// can tell.
type ScopeError struct{ Scope, Detail string }

// Error returns the detail.
func (e *ScopeError) Error() string { return e.Detail }

// Lacks returns the scopes of a list that the caller does not have.
func (c *Caller) Lacks(scopes []string) []string {
	return slices.DeleteFunc(slices.Clone(scopes), c.May)
}

// May reports whether the caller has a scope, or one that includes it.
func (c *Caller) May(scope string) bool {
	return slices.Contains(c.Scopes, scope) || slices.ContainsFunc(includes[scope], func(wider string) bool { return slices.Contains(c.Scopes, wider) })
}
