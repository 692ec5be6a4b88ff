package push

import "fmt"

// CampaignAction is an action on a campaign as a whole.
type CampaignAction string

// The actions.
const (
	CampaignStart  CampaignAction = "start"
	CampaignPause  CampaignAction = "pause"
	CampaignResume CampaignAction = "resume"
	CampaignCancel CampaignAction = "cancel"
)

// campaignActs lists, by action, the states it may start from, and the states that it has led to.
var campaignActs = map[CampaignAction]struct{ from, done []CampaignStatus }{
	CampaignStart:  {[]CampaignStatus{CampaignDraft}, []CampaignStatus{CampaignStarting, CampaignRunning}},
	CampaignPause:  {[]CampaignStatus{CampaignStarting, CampaignRunning}, []CampaignStatus{CampaignPausing, CampaignPaused}},
	CampaignResume: {[]CampaignStatus{CampaignPausing, CampaignPaused}, []CampaignStatus{CampaignStarting, CampaignRunning}},
	CampaignCancel: {
		[]CampaignStatus{CampaignStarting, CampaignRunning, CampaignPausing, CampaignPaused}, []CampaignStatus{CampaignCanceling, CampaignCanceled},
	},
}

// On returns the state that an action leads to, or the current state if the action is already done. The error is a
// [*CampaignStateError].
func (a CampaignAction) On(c Campaign) (CampaignStatus, error) {
	act := campaignActs[a]
	for _, s := range act.done {
		if c.Status == s {
			return s, nil
		}
	}
	for _, s := range act.from {
		if c.Status == s {
			return a.leads(c)
		}
	}
	return c.Status, &CampaignStateError{Campaign: c, Detail: fmt.Sprintf("the campaign is %s; it cannot %s", c.Status, a.passive())}
}

// leads returns the state that an action leads to.
func (a CampaignAction) leads(c Campaign) (CampaignStatus, error) {
	switch a {
	case CampaignStart:
		if c.Size == 0 {
			return c.Status, &CampaignStateError{Campaign: c, Detail: "the campaign has no audience; upload one first"}
		}
		return CampaignStarting, nil
	case CampaignPause:
		return CampaignPausing, nil
	case CampaignCancel:
		return CampaignCanceling, nil
	}
	if c.Progress.Pending > 0 {
		return CampaignStarting, nil
	}
	return CampaignRunning, nil
}

func (a CampaignAction) passive() string {
	return map[CampaignAction]string{
		CampaignStart: "be started", CampaignPause: "be paused", CampaignResume: "be resumed", CampaignCancel: "be canceled",
	}[a]
}

// Over reports whether the state is final.
func (s CampaignStatus) Over() bool { return s == CampaignCanceled || s == CampaignFinished }
