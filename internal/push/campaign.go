package push

import (
	"encoding/json"
	"time"

	"github.com/google/uuid"
)

// Campaign is one message for everybody in an audience. All times are UTC but for LocalTime.
type Campaign struct {
	ID, Tenant              uuid.UUID
	Name, Channel, Category string

	SendAt       time.Time     // zero: LocalTime, or when it is started
	LocalTime    time.Time     // what the clocks of each recipient show, as UTC shows it; zero: there is only SendAt
	TimeZone     string        // of LocalTime; empty: the recipient's, and else the default zone of the policy
	Spread       time.Duration // each recipient's send time is less than this, and whole seconds, behind the others'
	OnConflict   string        // reject or defer
	Latest       time.Time     // no recipient is deferred to after this; zero: as late as any push may be
	ExpiresAfter time.Duration // each push's send time; 0: the default
	Message      json.RawMessage
	Metadata     json.RawMessage // a JSON object, or nil

	Status    CampaignStatus
	Audience  uuid.UUID // the upload that the recipients came with; zero: there is none yet
	Size      int64     // recipients in the audience
	CreatedAt time.Time
	UpdatedAt time.Time
	StartedAt time.Time // by Postgres' clock, which is now for a campaign without a time; zero: it is a draft
	EndedAt   time.Time // zero: it goes on

	Progress CampaignProgress // as it was when the campaign was read
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
	CampaignStarting  CampaignStatus = "starting"  // its recipients are being booked
	CampaignRunning   CampaignStatus = "running"   // all of them are
	CampaignPausing   CampaignStatus = "pausing"   // nothing is sent any more; not all that waits is set aside yet
	CampaignPaused    CampaignStatus = "paused"    // what waits is set aside
	CampaignCanceling CampaignStatus = "canceling" // nothing is sent any more; not all places are given back yet
	CampaignCanceled  CampaignStatus = "canceled"  // all are
	CampaignFinished  CampaignStatus = "finished"  // all have ended
)

// Pattern reports whether a campaign in this state can be copied: nothing changes in it, but by its owner.
func (s CampaignStatus) Pattern() bool { return s == CampaignDraft || s == CampaignFinished }

// CampaignLine is a recipient of a campaign, as its line of the audience says.
type CampaignLine struct {
	Line      int // where it begins; the header of CSV is line 1
	Recipient string
	To        string          // empty: the address that is known of the recipient
	Variables json.RawMessage // an object of the other columns, and of an empty to, or nil
}

// Bytes returns how many bytes of text the line has, as it is kept.
func (l *CampaignLine) Bytes() int { return len(l.Recipient) + len(l.To) + len(l.Variables) }

// CampaignOutcome is what has become of a recipient of a campaign. The outcomes are disjoint.
type CampaignOutcome string

// The outcomes of recipients. The last four are the states of pushes that have ended.
const (
	OutcomePending   CampaignOutcome = "pending"   // not booked yet
	OutcomeScheduled CampaignOutcome = "scheduled" // booked, and not ended: it may be under way
	OutcomeRefused   CampaignOutcome = "refused"   // the quota, or a cap, had no place
	OutcomeOptedOut  CampaignOutcome = "opted_out" // the recipient does not want it
	OutcomeInvalid   CampaignOutcome = "invalid"   // the line makes no push
	OutcomeSent      CampaignOutcome = "sent"
	OutcomeFailed    CampaignOutcome = "failed"
	OutcomeExpired   CampaignOutcome = "expired"
	OutcomeCanceled  CampaignOutcome = "canceled" // its push was, or the campaign was before it had one
)

// CampaignProgress counts the recipients of a campaign by their outcomes, all at one moment: together they are Audience.
type CampaignProgress struct {
	Audience int64
	Pending, Scheduled, Refused, OptedOut, Invalid, Sent, Failed, Expired, Canceled,

	// Deferred are those that were booked at another time than was asked for. They are counted above, too.
	Deferred int64
}

// CampaignStateError says that a campaign is not in a state in which something can be done.
type CampaignStateError struct {
	Campaign Campaign // as it stands
	Detail   string   // what cannot be done, and why
}

// Error is the detail.
func (e *CampaignStateError) Error() string { return e.Detail }

// CampaignPosition is a place in a list of campaigns: behind the campaign that was made then, and has this id.
type CampaignPosition struct {
	CreatedAt time.Time
	ID        uuid.UUID
}

// CampaignPage is a page of a list of campaigns, the latest first.
type CampaignPage struct {
	Campaigns []Campaign
	Next      *CampaignPosition // behind which the next page begins; nil: this is the last one
}
