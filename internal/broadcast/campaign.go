package broadcast

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
)

// Campaign is one message for all recipients of an audience. All times are UTC except LocalTime.
type Campaign struct {
	ID, Tenant              uuid.UUID
	Name, Channel, Category string

	SendAt       time.Time     // zero: LocalTime applies, or the time of its start
	LocalTime    time.Time     // the wall clock time of each recipient, stored as if it were UTC; zero: SendAt applies
	TimeZone     string        // the zone of LocalTime; "": the recipient's zone, by default the policy's
	Spread       time.Duration // each send time is delayed by less than this, in whole seconds
	OnConflict   string        // reject or defer
	Latest       time.Time     // the latest time that a recipient is deferred to; zero: as late as any push
	ExpiresAfter time.Duration // after each push's send time; 0: the default
	Message      json.RawMessage
	Metadata     json.RawMessage // a JSON object, or nil

	Status    Status
	Audience  uuid.UUID // the upload of the recipients; zero: none yet
	Size      int64     // recipients in the audience
	CreatedAt time.Time
	UpdatedAt time.Time
	StartedAt time.Time // by Postgres' clock; the send time of a campaign without a time; zero: a draft
	EndedAt   time.Time // zero: it has not ended

	Progress Progress // at the time of reading
	Segments int64    // of the text messages that were sent by then
	Begun    bool     // one of its pushes was due by then
}

// Status is the state of a campaign.
type Status string

// Statuses lists all states.
var Statuses = []Status{
	Draft, Starting, Running, Pausing, Paused, Canceling, Canceled, Finished,
}

// The states of a campaign.
const (
	Draft     Status = "draft"
	Starting  Status = "starting"  // recipients are being booked
	Running   Status = "running"   // all recipients are booked
	Pausing   Status = "pausing"   // sends have stopped; not all waiting pushes are set aside yet
	Paused    Status = "paused"    // waiting pushes are set aside
	Canceling Status = "canceling" // sends have stopped; not all places in the quota are free yet
	Canceled  Status = "canceled"  // all places are free
	Finished  Status = "finished"  // all pushes have ended
)

// Pattern reports whether a campaign in this state can be copied: only its owner changes it.
func (s Status) Pattern() bool { return s == Draft || s == Finished }

// AudienceLine is a recipient of a campaign, as read from a line of the audience.
type AudienceLine struct {
	Line      int // its first line; the header of CSV is line 1
	Recipient string
	To        string          // "": the recipient's known address
	Variables json.RawMessage // an object of the other columns, and of an empty to, or nil
}

// Bytes returns the size of the stored text of the line.
func (l *AudienceLine) Bytes() int { return len(l.Recipient) + len(l.To) + len(l.Variables) }

// Outcome is the outcome of a recipient of a campaign. The outcomes are disjoint.
type Outcome string

// The outcomes of recipients. The last four are the final states of pushes.
const (
	OutcomePending   Outcome = "pending"   // not booked yet
	OutcomeScheduled Outcome = "scheduled" // booked, and not ended: it may be being sent
	OutcomeRefused   Outcome = "refused"   // the quota or a cap was full
	OutcomeOptedOut  Outcome = "opted_out" // the recipient has opted out
	OutcomeInvalid   Outcome = "invalid"   // no push can be made of the line
	OutcomeSent      Outcome = "sent"
	OutcomeFailed    Outcome = "failed"
	OutcomeExpired   Outcome = "expired"
	OutcomeCanceled  Outcome = "canceled" // the push was canceled, or the campaign was before the push was booked
)

// Progress counts the recipients of a campaign by outcome, all at one moment. The counts add up to Audience.
type Progress struct {
	Audience int64
	Pending, Scheduled, Refused, OptedOut, Invalid, Sent, Failed, Expired, Canceled,

	// Deferred counts the recipients that were booked at another time than requested. They are counted above, too.
	Deferred int64
}

// StateError rejects an action that the state of the campaign does not allow.
type StateError struct {
	Campaign Campaign // its current state
	Detail   string   // the rejected action, and why
}

// Error returns the detail.
func (e *StateError) Error() string { return e.Detail }

// Position is a position in a list of campaigns: after the one with this creation time and id.
type Position struct {
	CreatedAt time.Time
	ID        uuid.UUID
}

// Page is a page of a list of campaigns, the latest first.
type Page struct {
	Campaigns []Campaign
	Next      *Position // where the next page begins; nil: this is the last one
}

// Recipient is a recipient of a campaign and its outcome.
type Recipient struct {
	Recipient string // empty: erased
	Line      int    // of the audience
	Outcome   Outcome
	Push      uuid.UUID // zero: none was booked
	SendAt    time.Time // the send time of the push; without a push the requested time, or zero
	Reason    string    // why it was not booked or not sent
	Rules     []string  // the rules that refused it
}

// RecipientFilter selects recipients of a campaign. Empty fields select all.
type RecipientFilter struct {
	Outcome   Outcome
	Recipient string
}

// RecipientPage is a page of the recipients of a campaign, by line. Next is the line after which the next page
// begins; 0: this is the last one.
type RecipientPage struct {
	Recipients []Recipient
	Next       int
}

// Outcomes lists the outcomes of recipients.
var Outcomes = []Outcome{
	OutcomePending, OutcomeScheduled, OutcomeRefused, OutcomeOptedOut, OutcomeInvalid, OutcomeSent, OutcomeFailed, OutcomeExpired, OutcomeCanceled,
}

// Copy is a campaign to create and start as a copy of another one, with its recipients.
type Copy struct {
	ID     uuid.UUID // the new campaign
	Tenant uuid.UUID
	Of     uuid.UUID    // a draft or a finished campaign
	Suffix string       // appended to the name
	Caps   push.OwnCaps // the tenant's caps
}

var (
	// ErrNothingToCopy: there is no audience, or all of its recipients were erased.
	ErrNothingToCopy = errors.New("the campaign has no recipients")
	// ErrTooMany: the tenant has reached the maximum number of campaigns that have not ended.
	ErrTooMany = errors.New("the tenant already has the maximum number of campaigns that have not ended")
)
