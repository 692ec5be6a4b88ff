// Package suppression defines suppressions: addresses to which a tenant's channel sends nothing, and why. It is pure: the store
// keeps them, and every booking and every claim looks at them (package booking).
package suppression

import (
	"crypto/sha256"
	"encoding/binary"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/address"
)

// Reason is why an address is suppressed.
type Reason string

// The reasons. An address can have an entry for each.
const (
	HardBounce   Reason = "hard_bounce"  // the provider reported that the address does not exist
	Complaint    Reason = "complaint"    // its owner has marked a message as spam
	Stop         Reason = "stop"         // its owner has answered STOP
	Unregistered Reason = "unregistered" // the provider does not know the device any more
	Manual       Reason = "manual"       // the tenant wants it
)

// Reasons lists all reasons.
var Reasons = []Reason{HardBounce, Complaint, Stop, Unregistered, Manual}

// Failed is the last error of a push that was not sent, or was canceled, because its address is suppressed. It is the name of the
// API's problem, too.
const Failed = "suppressed"

// MaxAddress is the maximum length of an address in bytes.
const MaxAddress = 2048

// Entry suppresses an address of a tenant on one channel, for one reason.
type Entry struct {
	Tenant  uuid.UUID
	Channel string
	Address string // as [Normal] returns it
	Reason  Reason
	At      time.Time // when it was stored first, or again after its end
	Until   time.Time // the end; zero: none
	Push    uuid.UUID // the push that the provider or the owner answered; Nil: none
}

// Key identifies the address of the entry among all addresses of all tenants.
func (e *Entry) Key() int64 { return KeyOf(e.Tenant, e.Channel, e.Address) }

// KeyOf identifies an address of a tenant on a channel: 64 bits of SHA-256. Different spellings of one address have the same key.
func KeyOf(tenant uuid.UUID, channel, of string) int64 {
	var buf [256]byte
	text := append(append(append(buf[:0], tenant[:]...), channel...), 0)
	sum := sha256.Sum256(append(text, Normal(of)...))
	return int64(binary.BigEndian.Uint64(sum[:8]))
}

// Normal returns the form in which addresses are compared, by [address.Normal]. What has an @ is an e-mail address, unless it is a URL, and
// what begins with + or 00 a telephone number. All other addresses, and those of a wrong form, stay, without spaces around them.
func Normal(of string) string {
	of = strings.TrimSpace(of)
	switch {
	case strings.Contains(of, "@") && !strings.Contains(of, "://"):
		return address.Normal(address.Email, of)
	case strings.HasPrefix(of, "+") || strings.HasPrefix(of, "00"):
		return address.Normal(address.SMS, of)
	}
	return of
}

// Position returns the position of the entry in the list of its tenant.
func (e *Entry) Position() Position { return Position{e.Address, e.Channel, e.Reason} }

// Stored is an entry as it was stored.
type Stored struct {
	Entry
	Created bool // it was not there before
}

// Filter selects entries. Zero fields select all.
type Filter struct {
	Channel, Address string
	Reason           Reason
}

// Position is a position in the list of a tenant's entries: after the entry with these members.
type Position struct {
	Address, Channel string
	Reason           Reason
}

// Page is a page of a tenant's entries. Next is where the next page begins; nil: this is the last one.
type Page struct {
	Entries []Entry
	Next    *Position
}

// InForce reports whether the entry suppresses its address at a time.
func (e *Entry) InForce(now time.Time) bool { return e.Until.IsZero() || now.Before(e.Until) }
