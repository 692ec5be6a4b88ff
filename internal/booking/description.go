package booking

import (
	"encoding/json"
	"maps"
	"slices"
	"time"
)

// DescriptionFilter chooses descriptions. Its zero value chooses all.
type DescriptionFilter struct {
	OptedOut bool   // of recipients who have opted out, in any part
	Address  string // of recipients with this address on some channel, in upper or lower case
}

// Description is all that a tenant says of a recipient.
type Description struct {
	Recipient  string
	TimeZone   string            // an IANA name; empty: that of the policy
	Addresses  map[string]string // by channel
	OptOuts    OptOuts
	Limits     map[string]int  // by the names of rules
	LimitOrder []string        `json:"-"` // the names of Limits in the order of the request; nil: by the alphabet
	Attributes json.RawMessage // an object; nil: one without members

	Keep Members // that are left as they were
	Log  bool    // the audit log has an entry of it alone

	CreatedAt, UpdatedAt time.Time
}

// LimitNames returns the names of the limits in their order.
func (d *Description) LimitNames() []string {
	if len(d.LimitOrder) != len(d.Limits) {
		return slices.Sorted(maps.Keys(d.Limits))
	}
	return d.LimitOrder
}

// Members are some of the members of a description, and of its opt-outs.
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

// Has reports whether one is among them.
func (m Members) Has(one Members) bool { return m&one != 0 }

// Described is a description as it was stored.
type Described struct {
	Description
	Created   bool
	Canceled      // those that the recipient does not want
	Rechecked int // pushes that a rule had put off, and that are due again
}

// Erased is what became of a recipient who was forgotten.
type Erased struct {
	Rows int // from which something was erased
	Canceled
}

// Canceled are pushes that waited, and do not any more.
type Canceled struct {
	Pushes int
	Days   []Day // of their send times
}

// Add adds others.
func (c *Canceled) Add(others Canceled) {
	c.Pushes += others.Pushes
	for _, day := range others.Days {
		if !slices.Contains(c.Days, day) {
			c.Days = append(c.Days, day)
		}
	}
}

// Cancel notes that a push for a time was canceled.
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
