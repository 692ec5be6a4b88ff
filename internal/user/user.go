// Package user defines the users of the console: roles, passwords, one-time links and sessions. It is pure, except for
// the memory and time of a password's hash. The store saves these types; the API and the console decide with them.
//
// It is not for callers of the REST API, which have keys.
package user

import (
	"errors"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

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
	External     bool // created by a sign-in at the OIDC provider
	DisabledAt   *time.Time
	CreatedAt    time.Time
	LastSignInAt *time.Time // nil: never
	LinkEndsAt   *time.Time // when the last link expires; nil: there is none
}

// New is a user to create.
type New struct {
	Tenant uuid.UUID
	Email  string // as [CleanEmail] returns it
	Name   string
	Role   Role
	Link   [32]byte     // the hash of the link for setting a password; see [NewLink]
	Most   int          // the maximum number of users of the tenant; 0: unlimited
	By     *push.Caller // the caller that creates the user; nil: the operator
}

// Change lists the changes to a user. Nil fields stay.
type Change struct {
	Name     *string
	Role     *Role
	Disabled *bool
}

// External is a user that an OIDC provider has authenticated.
type External struct {
	Tenant          uuid.UUID
	Issuer, Subject string
	Email           string // as [CleanEmail] returns it
	EmailVerified   bool   // the provider has verified the address; otherwise it identifies no user
	Name            string
	Role            Role
	Most            int // the maximum number of users of the tenant; 0: unlimited
}

// Credential is a user who can sign in with a password.
type Credential struct {
	User
	Hash string // of the password, as [Passwords.Hash] returns it
}

// Page is a page of users. Next is the position of the last one if there are more.
type Page struct {
	Users []User
	Next  *Position
}

// Position is the position of a user in its tenant's list, which is sorted by age.
type Position struct {
	CreatedAt time.Time
	ID        uuid.UUID
}

var (
	// ErrTooMany: the tenant has reached the maximum number of users.
	ErrTooMany = errors.New("the tenant already has the maximum number of users")
	// ErrEmailTaken: another user of the tenant has this sign-in name.
	ErrEmailTaken = errors.New("another user of the tenant has this email")
	// ErrLastAdmin: without this admin, no user of the tenant could manage users.
	ErrLastAdmin = errors.New("this is the tenant's last active admin")
	// ErrDisabled: the user may not sign in.
	ErrDisabled = errors.New("the user is disabled")
	// ErrExternal: the user can only sign in at the OIDC provider.
	ErrExternal = errors.New("the user signs in at the OIDC provider and cannot have a password or links")
	// ErrUnverified: a new user of the OIDC provider has no address that the provider has verified.
	ErrUnverified = errors.New("the OIDC provider has not verified the email")
)

// The maximum lengths of a user's address and name, in bytes.
const (
	MaxEmail = 254
	MaxName  = 100
)

// CleanEmail returns the stored form of a sign-in name: trimmed and in lower case. wrong is what is wrong with the
// name, or "".
func CleanEmail(text string) (email, wrong string) {
	email = strings.ToLower(strings.TrimSpace(text))
	local, domain, _ := strings.Cut(email, "@")
	switch {
	case email == "":
		return "", "must not be empty"
	case len(email) > MaxEmail:
		return "", "must have at most 254 bytes"
	case !utf8.ValidString(text), strings.ContainsFunc(email, func(c rune) bool { return !unicode.IsPrint(c) || unicode.IsSpace(c) }):
		return "", "must consist of printable characters, without spaces"
	case local == "" || domain == "" || strings.Contains(domain, "@"):
		return "", "must be an e-mail address, like ada@example.com"
	}
	return email, ""
}
