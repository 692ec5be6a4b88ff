package push

// CampaignPhase is how far the sending of a campaign has come. The status of a campaign names the work of the workers instead: a campaign
// is running as soon as its recipients are booked, even if the first of them is due in a week.
type CampaignPhase string

// The phases of a campaign.
const (
	PhaseDraft            CampaignPhase = "draft"
	PhaseScheduled        CampaignPhase = "scheduled"          // it was started, and none of its pushes has been due
	PhaseSending          CampaignPhase = "sending"            // the first of its pushes is due, and not all have ended
	PhasePaused           CampaignPhase = "paused"             // no attempt begins
	PhaseCanceled         CampaignPhase = "canceled"           // no attempt begins any more
	PhaseSent             CampaignPhase = "sent"               // every recipient who has not opted out was sent it
	PhaseSentWithProblems CampaignPhase = "sent_with_problems" // some recipients were sent it; others were not, and had not opted out
	PhaseNotSent          CampaignPhase = "not_sent"           // all have ended, and no recipient was sent it
)

// Phase returns how far the sending has come.
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
