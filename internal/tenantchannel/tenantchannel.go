package tenantchannel

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/google/uuid"
)

// Channel is a stored channel of a tenant.
type Channel struct {
	ID        uuid.UUID
	Tenant    uuid.UUID
	Name      string
	Type      string
	Settings  json.RawMessage      // the members that the tenant gave, without secrets
	Secrets   map[string]string    // by member; nil if they were not read, or cannot be opened
	SecretAt  map[string]time.Time // when each secret was set
	Disabled  bool
	Deleting  bool  // nothing is accepted or sent
	Cancels   bool  // its deletion cancels pushes
	Canceled  int   // pushes that its deletion has canceled so far
	Version   int64 // grows with every change of any tenant's channels
	CreatedAt time.Time
	UpdatedAt time.Time
	Fault     error // why its secrets cannot be opened; nil: they can
}

// Own has the channels of a tenant that a process knows.
type Own struct {
	Tenant   uuid.UUID
	Name     string // of the tenant
	Version  int64  // of its channels; 0: it never had any
	Channels []Channel
}

// Change is a channel that a tenant wants to have.
type Change struct {
	Name, Type string
	Settings   json.RawMessage
	Secrets    map[string]string
	Disabled   bool
	Max        int // channels of the tenant
}

// Changer makes a channel from the stored one, which has no ID if there is none.
type Changer func(was Channel) (Change, error)

// Test is a test send that has begun.
type Test struct {
	Entry uuid.UUID // of the audit log
	At    time.Time // of the entry
	Left  int       // tests that the tenant can make in this hour
}

// TestsPerHour is the maximum number of tests of a tenant in an hour.
const TestsPerHour = 10

var (
	// ErrTooMany reports that the tenant has the maximum number of channels.
	ErrTooMany = errors.New("the tenant has the maximum number of channels")
	// ErrBusy reports that transactions that have read the channel take too long.
	ErrBusy = errors.New("requests that use the channel take too long")
	// ErrSealed reports that no key opens the secrets of the channel. The log has the reason, which is the operator's.
	ErrSealed = errors.New("its secrets cannot be opened; send them again, or ask the operator")
	// ErrDeleting reports that the channel is being deleted.
	ErrDeleting = errors.New("the channel is being deleted")
)

// InUseError reports that pushes are booked for a channel that a tenant wants to delete, or that campaigns in progress go on
// booking them.
type InUseError struct {
	Pushes, Campaigns int
	Canceled          int  // pushes that the deletion has canceled so far, in all requests
	Canceling         bool // the deletion may cancel pushes: those that are left have an attempt under way
}

func (e *InUseError) Error() string {
	if e.Canceling && e.Campaigns == 0 {
		return fmt.Sprintf("%d pushes are canceled, and %d have an attempt under way; repeat the request when it has ended", e.Canceled, e.Pushes)
	}
	if e.Campaigns > 0 {
		return fmt.Sprintf("%d pushes are booked for the channel, and %d campaigns in progress have more recipients; cancel these campaigns first", e.Pushes, e.Campaigns)
	}
	return fmt.Sprintf("%d pushes are booked for the channel", e.Pushes)
}

// Deletion is a deletion of a channel that has begun.
type Deletion struct {
	Tenant, ID uuid.UUID // of the channel: another may get the name meanwhile
	Name       string
	Cancel     bool // the caller permits it to cancel pushes
}

// Deleted is what a deletion has done, and what it leaves behind: campaigns and schedules that name the channel use the operator's of that
// name from now on.
type Deleted struct {
	Canceled  int // pushes, in all requests for the deletion
	Drafts    int // of campaigns
	Schedules int
}

// TooManyTestsError reports that a tenant has made the tests of this hour.
type TooManyTestsError struct{ In time.Duration }

func (e *TooManyTestsError) Error() string {
	return fmt.Sprintf("a tenant can make %d tests an hour", TestsPerHour)
}

// nameShape is the shape of the names of channels.
var nameShape = regexp.MustCompile(`^[a-z0-9_-]{1,64}$`)

// NameFault returns why a channel cannot have a name, or "".
func NameFault(name string) string {
	if nameShape.MatchString(name) {
		return ""
	}
	return "must be 1 to 64 of a-z, 0-9, - and _"
}
