package push

import "testing"

// TestCampaign_Phase checks the phase of each state. For a running or finished campaign it follows from the pushes.
func TestCampaign_Phase(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		status CampaignStatus
		begun  bool
		is     CampaignProgress
		want   CampaignPhase
	}{
		{CampaignDraft, false, CampaignProgress{Audience: 3, Pending: 3}, PhaseDraft},
		{CampaignStarting, false, CampaignProgress{Audience: 3, Pending: 3}, PhaseScheduled},
		{CampaignStarting, true, CampaignProgress{Audience: 3, Pending: 2, Sent: 1}, PhaseSending},
		{CampaignRunning, false, CampaignProgress{Audience: 3, Scheduled: 2, OptedOut: 1}, PhaseScheduled},
		{CampaignRunning, true, CampaignProgress{Audience: 3, Scheduled: 3}, PhaseSending},
		{CampaignPausing, true, CampaignProgress{Audience: 3, Scheduled: 2, Sent: 1}, PhasePaused},
		{CampaignPaused, false, CampaignProgress{Audience: 3, Scheduled: 3}, PhasePaused},
		{CampaignCanceling, true, CampaignProgress{Audience: 3, Scheduled: 2, Sent: 1}, PhaseCanceled},
		{CampaignCanceled, true, CampaignProgress{Audience: 3, Canceled: 3}, PhaseCanceled},
		{CampaignFinished, true, CampaignProgress{Audience: 3, Sent: 3}, PhaseSent},
		{CampaignFinished, true, CampaignProgress{Audience: 3, Sent: 2, OptedOut: 1}, PhaseSent},
		{CampaignFinished, true, CampaignProgress{Audience: 3, Sent: 2, Refused: 1}, PhaseSentWithProblems},
		{CampaignFinished, true, CampaignProgress{Audience: 3, Sent: 1, Invalid: 1, Failed: 1}, PhaseSentWithProblems},
		{CampaignFinished, true, CampaignProgress{Audience: 3, Failed: 3}, PhaseNotSent},
		{CampaignFinished, true, CampaignProgress{Audience: 3, OptedOut: 3}, PhaseNotSent},
	} {
		c := Campaign{Status: tt.status, Begun: tt.begun, Progress: tt.is}
		if got := c.Phase(); got != tt.want {
			t.Errorf("%s, %+v: %s, want %s", tt.status, tt.is, got, tt.want)
		}
	}
}
