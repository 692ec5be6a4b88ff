package push

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/google/uuid"
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

	Status    CampaignStatus
	Audience  uuid.UUID // the upload of the recipients; zero: none yet
	Size      int64     // recipients in the audience
	CreatedAt time.Time
	UpdatedAt time.Time
	StartedAt time.Time // by Postgres' clock; the send time of a campaign without a time; zero: a draft
	EndedAt   time.Time // zero: it has not ended

	Progress CampaignProgress // at the time of reading
	Begun    bool             // one of its pushes was due by then
}

// CampaignStatus is the state of a campaign.
type CampaignStatus string

// CampaignStatuses lists all states.
var CampaignStatuses = []CampaignStatus{
	CampaignDraft, CampaignStarting, CampaignRunning, CampaignPausing, CampaignPaused, CampaignCanceling, CampaignCanceled, CampaignFinished,
}

// The states of a campaign.
const (
	CampaignDraft     CampaignStatus = "draft"
	CampaignStarting  CampaignStatus = "starting"  // recipients are being booked
	CampaignRunning   CampaignStatus = "running"   // all recipients are booked
	CampaignPausing   CampaignStatus = "pausing"   // sends have stopped; not all waiting pushes are set aside yet
	CampaignPaused    CampaignStatus = "paused"    // waiting pushes are set aside
	CampaignCanceling CampaignStatus = "canceling" // sends have stopped; not all places in the quota are free yet
	CampaignCanceled  CampaignStatus = "canceled"  // all places are free
	CampaignFinished  CampaignStatus = "finished"  // all pushes have ended
)

// Pattern reports whether a campaign in this state can be copied: only its owner changes it.
func (s CampaignStatus) Pattern() bool { return s == CampaignDraft || s == CampaignFinished }

// CampaignLine is a recipient of a campaign, as read from a line of the audience.
type CampaignLine struct {
	Line      int // its first line; the header of CSV is line 1
	Recipient string
	To        string          // "": the recipient's known address
	Variables json.RawMessage // an object of the other columns, and of an empty to, or nil
}

// Bytes returns the size of the stored text of the line.
func (l *CampaignLine) Bytes() int { return len(l.Recipient) + len(l.To) + len(l.Variables) }

// CampaignOutcome is the outcome of a recipient of a campaign. The outcomes are disjoint.
type CampaignOutcome string

// The outcomes of recipients. The last four are the final states of pushes.
const (
	OutcomePending   CampaignOutcome = "pending"   // not booked yet
	OutcomeScheduled CampaignOutcome = "scheduled" // booked, and not ended: it may be being sent
	OutcomeRefused   CampaignOutcome = "refused"   // the quota or a cap was full
	OutcomeOptedOut  CampaignOutcome = "opted_out" // the recipient has opted out
	OutcomeInvalid   CampaignOutcome = "invalid"   // no push can be made of the line
	OutcomeSent      CampaignOutcome = "sent"
	OutcomeFailed    CampaignOutcome = "failed"
	OutcomeExpired   CampaignOutcome = "expired"
	OutcomeCanceled  CampaignOutcome = "canceled" // the push was canceled, or the campaign was before the push was booked
)

// CampaignProgress counts the recipients of a campaign by outcome, all at one moment. The counts add up to Audience.
type CampaignProgress struct {
	Audience int64
	Pending, Scheduled, Refused, OptedOut, Invalid, Sent, Failed, Expired, Canceled,

	// Deferred counts the recipients that were booked at another time than requested. They are counted above, too.
	Deferred int64
}

// CampaignStateError rejects an action that the state of the campaign does not allow.
type CampaignStateError struct {
	Campaign Campaign // its current state
	Detail   string   // the rejected action, and why
}

// Error returns the detail.
func (e *CampaignStateError) Error() string { return e.Detail }

// CampaignPosition is a position in a list of campaigns: after the one with this creation time and id.
type CampaignPosition struct {
	CreatedAt time.Time
	ID        uuid.UUID
}

// CampaignPage is a page of a list of campaigns, the latest first.
type CampaignPage struct {
	Campaigns []Campaign
	Next      *CampaignPosition // where the next page begins; nil: this is the last one
}

// CampaignRecipient is a recipient of a campaign and its outcome.
type CampaignRecipient struct {
	Recipient string // empty: erased
	Line      int    // of the audience
	Outcome   CampaignOutcome
	Push      uuid.UUID // zero: none was booked
	SendAt    time.Time // the send time of the push; without a push the requested time, or zero
	Reason    string    // why it was not booked or not sent
	Rules     []string  // the rules that refused it
}

// CampaignRecipientFilter selects recipients of a campaign. Empty fields select all.
type CampaignRecipientFilter struct {
	Outcome   CampaignOutcome
	Recipient string
}

// CampaignRecipientPage is a page of the recipients of a campaign, by line. Next is the line after which the next page
// begins; 0: this is the last one.
type CampaignRecipientPage struct {
	Recipients []CampaignRecipient
	Next       int
}

// CampaignOutcomes lists the outcomes of recipients.
var CampaignOutcomes = []CampaignOutcome{
	OutcomePending, OutcomeScheduled, OutcomeRefused, OutcomeOptedOut, OutcomeInvalid, OutcomeSent, OutcomeFailed, OutcomeExpired, OutcomeCanceled,
}

// CampaignCopy is a campaign to create and start as a copy of another one, with its recipients.
type CampaignCopy struct {
	ID     uuid.UUID // the new campaign
	Tenant uuid.UUID
	Of     uuid.UUID // a draft or a finished campaign
	Suffix string    // appended to the name
	Caps   OwnCaps   // the tenant's caps
}

// ErrNothingToCopy: there is no audience, or all of its recipients were erased.
var ErrNothingToCopy = errors.New("the campaign has no recipients")
