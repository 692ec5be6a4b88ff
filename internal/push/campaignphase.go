package push

// CampaignPhase is the progress of the sending. The status of a campaign, in contrast, is the progress of the workers:
// a campaign is running as soon as its recipients are booked, even if the first push is due in a week.
type CampaignPhase string

// The phases of a campaign.
const (
	PhaseDraft            CampaignPhase = "draft"
	PhaseScheduled        CampaignPhase = "scheduled"          // started; none of its pushes was due yet
	PhaseSending          CampaignPhase = "sending"            // its first push is due, and not all have ended
	PhasePaused           CampaignPhase = "paused"             // no attempt begins
	PhaseCanceled         CampaignPhase = "canceled"           // no attempt begins any more
	PhaseSent             CampaignPhase = "sent"               // it was sent to all recipients who had not opted out
	PhaseSentWithProblems CampaignPhase = "sent_with_problems" // it was sent to some; others failed, and had not opted out
	PhaseNotSent          CampaignPhase = "not_sent"           // all have ended, and it was sent to no recipient
)

// Phase returns the progress of the sending.
func (c *Campaign) Phase() CampaignPhase {
	is := &c.Progress
	switch c.Status {
	case CampaignDraft:
		return PhaseDraft
	case CampaignPausing, CampaignPaused:
		return PhasePaused
	case CampaignCanceling, CampaignCanceled:
		return PhaseCanceled
	case CampaignFinished:
		switch {
		case is.Sent == 0:
			return PhaseNotSent
		case is.Sent+is.OptedOut < is.Audience:
			return PhaseSentWithProblems
		}
		return PhaseSent
	}
	if c.Begun {
		return PhaseSending
	}
	return PhaseScheduled
}
