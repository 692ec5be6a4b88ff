package broadcast

// Phase is the progress of the sending. The status of a campaign, in contrast, is the progress of the workers:
// a campaign is running as soon as its recipients are booked, even if the first push is due in a week.
type Phase string

// The phases of a campaign.
const (
	PhaseDraft            Phase = "draft"
	PhaseScheduled        Phase = "scheduled"          // started; none of its pushes was due yet
	PhaseSending          Phase = "sending"            // its first push is due, and not all have ended
	PhasePaused           Phase = "paused"             // no attempt begins
	PhaseCanceled         Phase = "canceled"           // no attempt begins any more
	PhaseSent             Phase = "sent"               // it was sent to all recipients who had not opted out
	PhaseSentWithProblems Phase = "sent_with_problems" // it was sent to some; others failed, and had not opted out
	PhaseNotSent          Phase = "not_sent"           // all have ended, and it was sent to no recipient
)

// Phase returns the progress of the sending.
func (c *Campaign) Phase() Phase {
	is := &c.Progress
	switch c.Status {
	case Draft:
		return PhaseDraft
	case Pausing, Paused:
		return PhasePaused
	case Canceling, Canceled:
		return PhaseCanceled
	case Finished:
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
