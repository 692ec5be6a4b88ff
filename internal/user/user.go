// Package user says who signs in to the console: users with a role, their passwords, one-time links and sessions. It is
// pure but for the memory and the time that a password's hash takes; the store keeps what is here, and the API and the
// console decide with it.
//
// It is not for callers of the REST API, which have keys.
package user

import (
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
)

// User is one person of a tenant who may sign in.
type User struct {
	ID           uuid.UUID
	Tenant       uuid.UUID
	TenantName   string
	push.OwnCaps        // of the tenant
	Email        string // the sign-in name, in lower case; unique in its tenant
	Name         string // "": none
	Role         Role
	HasPassword  bool // false: the user has not used a link yet, or signs in elsewhere
	External     bool // the user was made by a sign-in at the OIDC provider
	DisabledAt   *time.Time
	CreatedAt    time.Time
	LastSignInAt *time.Time // nil: never
	LinkEndsAt   *time.Time // until when the last link can be used; nil: there is none
}

// New is a user that is to be made.
type New struct {
	Tenant uuid.UUID
	Email  string // as [CleanEmail] returns it
	Name   string
	Role   Role
	Link   [32]byte     // of the link with which the user sets a password; see [NewLink]
	Most   int          // users that the tenant may have; 0: any number
	By     *push.Caller // makes the user; nil: the operator
}

// Change is what is to be different in a user. What is nil stays.
type Change struct {
	Name     *string
	Role     *Role
	Disabled *bool
}

// External is a user whom an OIDC provider vouches for.
type External struct {
	Tenant          uuid.UUID
	Issuer, Subject string
	Email           string // as [CleanEmail] returns it
	EmailVerified   bool   // the provider says that the address is the user's; else it names no user
	Name            string
	Role            Role
	Most            int // users that the tenant may have; 0: any number
}

// Credential is a user who can sign in with a password.
type Credential struct {
	User
	Hash string // of the password, as [Passwords.Hash] returns it
}

// Page is a page of users, and the last of them if there are more.
type Page struct {
	Users []User
	Next  *Position
}

// Position is where a user stands in the list of its tenant's: by its age.
type Position struct {
	CreatedAt time.Time
	ID        uuid.UUID
}

var (
	// ErrTooMany: the tenant has as many users as it may.
	ErrTooMany = errors.New("the tenant has as many users as it may")
	// ErrEmailTaken: another user of the tenant has this sign-in name.
	ErrEmailTaken = errors.New("another user of the tenant has this email")
	// ErrLastAdmin: without this admin, nobody in the tenant could manage users any more.
	ErrLastAdmin = errors.New("this is the last admin of the tenant that is not disabled")
	// ErrDisabled: the user may not sign in.
	ErrDisabled = errors.New("the user is disabled")
	// ErrExternal: the user signs in at the OIDC provider alone.
	ErrExternal = errors.New("the user signs in at the OIDC provider, and has neither links nor a password")
	// ErrUnverified: a new user of the OIDC provider has no address that the provider has verified.
	ErrUnverified = errors.New("the OIDC provider has not verified the email")
)
