package booking

import (
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
)

// DueOrder asks for the recipients of due pushes in a lane. The levels share an answer that does not hold everything, by
// [push.DefaultShares]; what one level lacks, the others get. Of each level, pushes that are no [push.Push.Burst] come
// first, the longest due before the others.
type DueOrder struct {
	Lane     push.Lane
	Channels []DueChannel // pushes for other channels are left out
	Without  []int64      // recipient keys to leave out
	Most     int          // maximum number of pushes in total

	// Newest reverses the order within each rank: the pushes that became due last come first.
	Newest bool

	// From leaves out pushes that became due before it; zero: none. Reading from the very first push takes longer the
	// more pushes have ended since the last vacuum of the table: about 10 µs per thousand.
	From time.Time
}

// DueChannel asks for the pushes of one channel.
type DueChannel struct {
	Name   string
	Levels []push.Level // nil: all
	Most   int          // maximum number of pushes of each rank
	Behind Due          // only pushes of its level after this one, in the order of the answer; the zero value: all
}

// OwnDueOrder asks for due pushes through channels that tenants have made.
type OwnDueOrder struct {
	Lanes    []push.Lane
	Channels []DueChannel // named by their routes; each has one level
	Without  []int64      // recipient keys to leave out
}

// OwnRoutesOrder asks for channels of tenants with due pushes.
type OwnRoutesOrder struct {
	Lanes []push.Lane
	After string // a route; "": begin with the first
	Limit int    // of the channels to look at
}

// Due is a due push.
type Due struct {
	RecipientKey int64
	Tenant       uuid.UUID
	Channel      string    // its route
	At           time.Time // since when
	Rank         push.Rank
}

// Unparked is a push that becomes due again.
type Unparked struct {
	RecipientKey int64
	At           time.Time
	In           time.Duration // until At, by Postgres' clock; may be negative
}
