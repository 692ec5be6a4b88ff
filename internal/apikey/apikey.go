package apikey

import (
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
)

// Key describes an API key. The key itself is not stored.
type Key struct {
	ID         uuid.UUID
	Tenant     string // the tenant's name
	Name       string // as the tenant chose; "": none
	Scopes     []string
	CreatedAt  time.Time
	ExpiresAt  *time.Time // nil: never
	LastUsedAt *time.Time // to about a minute; nil: never
	RevokedAt  *time.Time // nil: not revoked
	State      State      // at the time of reading
	Successor  uuid.UUID  // the key that its last rotation created; Nil: never rotated
}

// State is the validity of an API key.
type State string

// The states of a key.
const (
	Live    State = "live"
	Expired State = "expired"
	Revoked State = "revoked"
)

// NewKey describes an API key to create.
type NewKey struct {
	Tenant    uuid.UUID
	By        *push.Caller // the caller that creates it; nil: the operator
	Name      string
	Scopes    []string      // duplicates are stored once
	Lifetime  time.Duration // 0: ExpiresAt applies
	ExpiresAt time.Time     // zero: it never expires, unless Lifetime is set
	Most      int           // the maximum number of live keys of the tenant; 0: unlimited
}

// Page is a page of API keys. Next is the position of the last one if there are more.
type Page struct {
	Keys []Key
	Next *Position
}

// Position is the position of an API key in its tenant's list, which is sorted by age.
type Position struct {
	CreatedAt time.Time
	ID        uuid.UUID
}

var (
	// ErrTooMany: the tenant has reached the maximum number of live API keys.
	ErrTooMany = errors.New("the tenant already has the maximum number of live API keys")
	// ErrOver: a revoked or expired API key cannot be rotated.
	ErrOver = errors.New("the key is revoked or has expired; make a new one")
	// ErrCallerOver: the API key of the request was revoked, or expired, during the request.
	ErrCallerOver = errors.New("the API key of the request is revoked or has expired")
)

// EndError rejects an API key that would expire after the key that creates it.
type EndError struct{ Wanted, Latest time.Time }

// Error names the expiry of the creating key.
func (e *EndError) Error() string {
	return "the key must not expire after the key of the request, which expires at " + e.Latest.UTC().Format(time.RFC3339)
}

// ReplacedError rejects the rotation of a key while both the key and its successor are live. A rotation needs two live
// keys, not three.
type ReplacedError struct{ Key, Successor uuid.UUID }

// Error names both keys and asks to revoke one.
func (e *ReplacedError) Error() string {
	return fmt.Sprintf("the key %s was rotated to the key %s; neither can be rotated while both are live: revoke one first", e.Key, e.Successor)
}
