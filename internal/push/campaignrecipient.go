package push

import (
	"time"

	"github.com/google/uuid"
)

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
