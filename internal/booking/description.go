package booking

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/suppression"
)

// DescriptionFilter selects descriptions. The zero value selects all.
type DescriptionFilter struct {
	OptedOut bool   // recipients who have opted out, at least in part
	Address  string // recipients with this address on some channel, ignoring case
}

// Description is the data that a tenant has stored about a recipient.
type Description struct {
	Recipient  string
	TimeZone   string            // an IANA name; "": the policy's zone
	Addresses  map[string]string // by channel
	OptOuts    OptOuts
	Limits     map[string]int  // by rule name
	LimitOrder []string        `json:"-"` // the names of Limits in the order of the request; nil: sorted
	Attributes json.RawMessage // an object; nil: an empty one

	Keep Members // members that stay unchanged
	Log  bool    // write an entry of its own to the audit log

	CreatedAt, UpdatedAt time.Time
}

// LimitNames returns the names of the limits in their order.
func (d *Description) LimitNames() []string {
	if len(d.LimitOrder) != len(d.Limits) {
		return slices.Sorted(maps.Keys(d.Limits))
	}
	return d.LimitOrder
}

// AddressKeys returns the keys of the addresses, as in suppressions, in the order of the channels.
func (d *Description) AddressKeys(tenant uuid.UUID) []int64 {
	var keys []int64
	for _, channel := range slices.Sorted(maps.Keys(d.Addresses)) {
		keys = append(keys, suppression.KeyOf(tenant, channel, d.Addresses[channel]))
	}
	return keys
}

// Members is a set of members of a description and its opt-outs.
type Members uint8

// The members of a description.
const (
	TimeZone Members = 1 << iota
	Addresses
	OptOutAll
	OptOutChannels
	OptOutCategories
	Limits
	Attributes
	Wishes     = OptOutAll | OptOutChannels | OptOutCategories
	AllMembers = TimeZone | Addresses | Wishes | Limits | Attributes
)

// Has reports whether the set contains a member.
func (m Members) Has(one Members) bool { return m&one != 0 }

// Described is a description as it was stored.
type Described struct {
	Description
	Created   bool
	Canceled      // pushes that the recipient has opted out of
	Rechecked int // pushes that a rule had put off, and that are due again
}

// Erased is the result of erasing a recipient.
type Erased struct {
	Rows int // rows with erased data
	Canceled
}

// Canceled counts canceled pushes that were scheduled.
type Canceled struct {
	Pushes int
	Days   []Day // of their send times
}

// Add adds other counts.
func (c *Canceled) Add(others Canceled) {
	c.Pushes += others.Pushes
	for _, day := range others.Days {
		if !slices.Contains(c.Days, day) {
			c.Days = append(c.Days, day)
		}
	}
}

// Cancel counts a push with a send time as canceled.
func (c *Canceled) Cancel(at time.Time) {
	c.Pushes++
	if day := DayOf(at); !slices.Contains(c.Days, day) {
		c.Days = append(c.Days, day)
	}
}

// The bounds of a description.
const (
	MaxAddresses  = 64
	MaxOptOuts    = 64 // channels, and categories
	MaxOwnLimits  = 50
	MaxLimit      = 100_000
	MaxAttributes = 16 << 10 // bytes
)
