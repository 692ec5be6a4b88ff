package push

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"
)

// Caller is the holder of an API key or a user of the console: a tenant, and the rights of the key or the role.
type Caller struct {
	Tenant uuid.UUID
	Scopes []string
	Caps   OwnCaps

	Key    uuid.UUID     // the id of the API key, not a secret; Nil: a user calls
	User   uuid.UUID     // the user of the console; Nil: an API key calls
	Masked bool          // sees only the part of an address that distinguishes it
	Left   time.Duration // remaining validity of the key when it was read; 0: it never expires
	Unseen bool          // the key's use has not been recorded for a minute
}

// The scopes of API keys.
const (
	ScopeWrite  = "pushes:write"    // submit, cancel, reschedule
	ScopeRead   = "pushes:read"     // read and list pushes
	ScopeQuota  = "quota:read"      // check quotas, see bookings
	ScopeLimits = "limits:take"     // take from speed limits
	ScopeHooks  = "webhooks:manage" // create, test and delete webhooks, see and repeat their deliveries

	ScopeRecipientsRead  = "recipients:read"  // read recipients' data and timelines
	ScopeRecipientsWrite = "recipients:write" // describe, import and erase recipients; includes recipients:read

	ScopePolicyRead  = "policy:read"  // read the policy, its versions and the counts of its shadow rules
	ScopePolicyWrite = "policy:write" // change the policy, but not existing bookings; includes policy:read

	ScopeCampaignsRead  = "campaigns:read"  // read campaigns and schedules
	ScopeCampaignsDraft = "campaigns:draft" // create, change and delete drafts of campaigns that no schedule copies; includes campaigns:read
	ScopeCampaignsWrite = "campaigns:write" // also start and stop them, and manage schedules and the campaigns these copy; includes both others

	ScopePausesRead  = "pauses:read"  // see what is paused
	ScopePausesWrite = "pauses:write" // stop and resume sending; includes pauses:read

	ScopeSuppressionsRead  = "suppressions:read"  // list suppressed addresses
	ScopeSuppressionsWrite = "suppressions:write" // add, import and remove them; includes suppressions:read

	ScopeRecordsRead = "records:read" // read sends, refusals, statistics, audits and the audit log

	ScopeKeysRead  = "keys:read"  // list API keys, without their secrets
	ScopeKeysWrite = "keys:write" // create, rotate and revoke them; includes keys:read

	ScopeChannelsRead  = "channels:read"  // read the state of channels, and the settings of the tenant's own without secrets
	ScopeChannelsWrite = "channels:write" // create, change, test and delete channels; includes channels:read

	ScopeUsersRead  = "users:read"  // list the users of the console
	ScopeUsersWrite = "users:write" // create, change and delete them, list and end their sessions; includes users:read
)

// Scopes lists all scopes. A key that is created without a choice has them all. Every role has the scopes that end in ":read".
var Scopes = []string{
	ScopeWrite, ScopeRead, ScopeQuota, ScopeLimits, ScopeHooks, ScopeRecipientsRead, ScopeRecipientsWrite,
	ScopePolicyRead, ScopePolicyWrite, ScopeCampaignsRead, ScopeCampaignsDraft, ScopeCampaignsWrite, ScopeRecordsRead, ScopeKeysRead, ScopeKeysWrite,
	ScopeUsersRead, ScopeUsersWrite, ScopePausesRead, ScopePausesWrite, ScopeChannelsRead, ScopeChannelsWrite,
	ScopeSuppressionsRead, ScopeSuppressionsWrite,
}

// includes lists, by scope, the wider scopes that include it.
var includes = map[string][]string{
	ScopeChannelsRead:   {ScopeChannelsWrite, ScopeRead},
	ScopeRecipientsRead: {ScopeRecipientsWrite}, ScopePolicyRead: {ScopePolicyWrite}, ScopeKeysRead: {ScopeKeysWrite}, ScopeUsersRead: {ScopeUsersWrite},
	ScopePausesRead: {ScopePausesWrite}, ScopeSuppressionsRead: {ScopeSuppressionsWrite}, ScopeCampaignsRead: {ScopeCampaignsDraft, ScopeCampaignsWrite}, ScopeCampaignsDraft: {ScopeCampaignsWrite},
}

// ScopeError rejects a change because its caller lacks a scope. The transaction of the change returns it if the missing
// scope is only found there.
type ScopeError struct{ Scope, Detail string }

// Error returns the detail.
func (e *ScopeError) Error() string { return e.Detail }

// Lacks returns the given scopes that the caller does not have.
func (c *Caller) Lacks(scopes []string) []string {
	return slices.DeleteFunc(slices.Clone(scopes), c.May)
}

// May reports whether the caller has a scope, or one that includes it.
func (c *Caller) May(scope string) bool {
	return slices.Contains(c.Scopes, scope) || slices.ContainsFunc(includes[scope], func(wider string) bool { return slices.Contains(c.Scopes, wider) })
}

// Caps bound what one tenant may have at a time, so that no tenant uses up shared capacity. A cap of 0 means no limit.
type Caps struct {
	PendingPushes    int // pushes that are scheduled or being sent
	RecipientsPerDay int // distinct recipients of pushes whose send time lies on one UTC day
}

// OwnCaps are the caps that the operator has set for one tenant; nil: the general cap applies.
type OwnCaps struct{ PendingPushes, RecipientsPerDay, AudienceBytes *int }

// Bytes returns the maximum size of the tenant's audiences, by default the general maximum usual; 0: unlimited.
func (own OwnCaps) Bytes(usual int) int {
	if own.AudienceBytes != nil {
		return *own.AudienceBytes
	}
	return usual
}

// Over returns the caps of a tenant: its own ones, and usual where it has none.
func (own OwnCaps) Over(usual Caps) Caps {
	if own.PendingPushes != nil {
		usual.PendingPushes = *own.PendingPushes
	}
	if own.RecipientsPerDay != nil {
		usual.RecipientsPerDay = *own.RecipientsPerDay
	}
	return usual
}

// Actor identifies the user, API key or link that makes a change. The zero Actor is the system. It travels in the
// context, so that the audit log can name it.
type Actor struct {
	Type ActorType
	ID   uuid.UUID // the user, API key or link; Nil: the system
	Name string    // the operator of the command-line tool; "": all others
}

// ActorType is the kind of an actor.
type ActorType string

// The types of actors.
const (
	ActorUser   ActorType = "user"   // of the console
	ActorKey    ActorType = "key"    // the holder of an API key
	ActorLink   ActorType = "link"   // the holder of a link for setting a password, maybe not the user
	ActorSystem ActorType = "system" // a worker, or the operator's tool
)

// ActorTypes lists all types of actors.
var ActorTypes = []ActorType{ActorUser, ActorKey, ActorLink, ActorSystem}

// Actor returns the caller as an actor: the user, or else the API key.
func (c *Caller) Actor() Actor {
	if c.User != uuid.Nil {
		return Actor{Type: ActorUser, ID: c.User}
	}
	return Actor{Type: ActorKey, ID: c.Key}
}

type actorKey struct{}

// WithActor returns a context that names the actor of all changes made with it.
func WithActor(ctx context.Context, a Actor) context.Context {
	return context.WithValue(ctx, actorKey{}, a)
}

// ActorOf returns the actor that [WithActor] put into a context, by default the system.
func ActorOf(ctx context.Context) Actor {
	if a, ok := ctx.Value(actorKey{}).(Actor); ok {
		return a
	}
	return Actor{Type: ActorSystem}
}
