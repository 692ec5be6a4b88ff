package booking

import (
	"encoding/json"
	"slices"
	"time"
)

// Description is all that a tenant says of a recipient.
type Description struct {
	Recipient  string
	TimeZone   string            // an IANA name; empty: that of the policy
	Addresses  map[string]string // by channel
	OptOuts    OptOuts
	Limits     map[string]int  // by the names of rules
	Attributes json.RawMessage // an object; nil: one without members

	CreatedAt, UpdatedAt time.Time
}

// Described is a description as it was stored.
type Described struct {
	Description
	Created  bool
	Canceled int   // pushes that waited, and that the recipient does not want
	Days     []Day // of these
}

// Cancel notes that a push for a time was canceled.
func (d *Described) Cancel(at time.Time) {
	d.Canceled++
	if day := DayOf(at); !slices.Contains(d.Days, day) {
		d.Days = append(d.Days, day)
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
