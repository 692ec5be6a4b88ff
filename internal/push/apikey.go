package push

import (
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// APIKey is what is known of an API key. The key itself is kept nowhere.
type APIKey struct {
	ID         uuid.UUID
	Tenant     string // its name
	Name       string // as the tenant chose; "": none
	Scopes     []string
	CreatedAt  time.Time
	ExpiresAt  *time.Time // nil: never
	LastUsedAt *time.Time // to about a minute; nil: never
	RevokedAt  *time.Time // nil: it was not
	State      KeyState   // when it was read
	Successor  uuid.UUID  // the key that its last rotation made; Nil: it was not rotated
}

// KeyState says whether an API key opens anything.
type KeyState string

// The states of a key.
const (
	KeyLive    KeyState = "live"
	KeyExpired KeyState = "expired"
	KeyRevoked KeyState = "revoked"
)

// NewKey is an API key that is to be made.
type NewKey struct {
	Tenant    uuid.UUID
	By        *Caller // who asks for it; nil: the operator
	Name      string
	Scopes    []string      // one that is named twice is stored once
	Lifetime  time.Duration // 0: as ExpiresAt says
	ExpiresAt time.Time     // zero: it never expires, unless there is a Lifetime
	Most      int           // live keys that the tenant may have; 0: any number
}

// KeyPage is a page of API keys, and the last of them if there are more.
type KeyPage struct {
	Keys []APIKey
	Next *KeyPosition
}

// KeyPosition is where an API key stands in the list of its tenant's: by its age.
type KeyPosition struct {
	CreatedAt time.Time
	ID        uuid.UUID
}

var (
	// ErrTooManyKeys: the tenant has as many live API keys as it may.
	ErrTooManyKeys = errors.New("the tenant has as many live API keys as it may")
	// ErrKeyOver: an API key that is revoked or has expired cannot be rotated.
	ErrKeyOver = errors.New("the key is revoked or has expired; make a new one")
	// ErrCallerOver: the API key of the request was revoked, or has expired, while the request was under way.
	ErrCallerOver = errors.New("the API key of the request is revoked or has expired")
)

// EndError says that an API key was to end later than the key that makes it.
type EndError struct{ Wanted, Latest time.Time }

// Error names the end of the key that makes it.
func (e *EndError) Error() string {
	return "the key would end later than the key of the request, which ends at " + e.Latest.UTC().Format(time.RFC3339)
}

// ReplacedError says that an API key was rotated, and that the key which replaces it is alive. Two live keys are what a
// rotation is for.
type ReplacedError struct{ Key, Successor uuid.UUID }

// Error says it, and what to do.
func (e *ReplacedError) Error() string {
	return fmt.Sprintf("the key %s was rotated, and the key %s replaces it; as long as both are live, neither can be rotated: revoke one first", e.Key, e.Successor)
}
