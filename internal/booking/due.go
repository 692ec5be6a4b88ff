package booking

import (
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
)

// DueOrder asks whose pushes are due in a lane: first those that are not [push.Push.Bulk], and of each kind the longest
// due.
type DueOrder struct {
	Lane     push.Lane
	Channels []DueChannel // pushes for others are left out
	Without  []int64      // recipient keys that are left out
	Most     int          // pushes of all channels together

	// Newest has those that became due last come first, of each kind.
	Newest bool

	// From leaves out what has been due since before it; zero: nothing. Reading from the very first push on takes
	// longer the more pushes have ended since the table was vacuumed last: about 10 µs for a thousand.
	From time.Time
}

// DueChannel asks for the pushes of one channel.
type DueChannel struct {
	Name   string
	Most   int // pushes of each kind
	Behind Due // only those behind this one, in the order of the answer; the zero value: all
}

// Due is a push that is due.
type Due struct {
	RecipientKey int64
	Tenant       uuid.UUID
	Channel      string
	At           time.Time // since when
	Bulk         bool
}
