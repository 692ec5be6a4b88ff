package push

import (
	"time"

	"github.com/google/uuid"
)

// CampaignRecipient is a recipient of a campaign, and what has become of them.
type CampaignRecipient struct {
	Recipient string // empty: erased
	Line      int    // of the audience
	Outcome   CampaignOutcome
	Push      uuid.UUID // zero: none was booked
	SendAt    time.Time // of the push; without one, the time that was asked for, or zero
	Reason    string    // why it was not booked, or not sent
	Rules     []string  // that have refused it
}

// CampaignRecipientFilter chooses recipients of a campaign. What is empty chooses all.
type CampaignRecipientFilter struct {
	Outcome   CampaignOutcome
	Recipient string
}

// CampaignRecipientPage is a part of the recipients of a campaign, in the order of their lines. Next is the line behind which the next
// part begins; 0: this is the last one.
type CampaignRecipientPage struct {
	Recipients []CampaignRecipient
	Next       int
}

// CampaignOutcomes lists the outcomes of recipients.
var CampaignOutcomes = []CampaignOutcome{
	OutcomePending, OutcomeScheduled, OutcomeRefused, OutcomeOptedOut, OutcomeInvalid, OutcomeSent, OutcomeFailed, OutcomeExpired, OutcomeCanceled,
}
