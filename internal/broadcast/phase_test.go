package broadcast

import "testing"

// TestCampaign_Phase checks the phase of each state. For a running or finished campaign it follows from the pushes.
func TestCampaign_Phase(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		status Status
		begun  bool
		is     Progress
		want   Phase
	}{
		{Draft, false, Progress{Audience: 3, Pending: 3}, PhaseDraft},
		{Starting, false, Progress{Audience: 3, Pending: 3}, PhaseScheduled},
		{Starting, true, Progress{Audience: 3, Pending: 2, Sent: 1}, PhaseSending},
		{Running, false, Progress{Audience: 3, Scheduled: 2, OptedOut: 1}, PhaseScheduled},
		{Running, true, Progress{Audience: 3, Scheduled: 3}, PhaseSending},
		{Pausing, true, Progress{Audience: 3, Scheduled: 2, Sent: 1}, PhasePaused},
		{Paused, false, Progress{Audience: 3, Scheduled: 3}, PhasePaused},
		{Canceling, true, Progress{Audience: 3, Scheduled: 2, Sent: 1}, PhaseCanceled},
		{Canceled, true, Progress{Audience: 3, Canceled: 3}, PhaseCanceled},
		{Finished, true, Progress{Audience: 3, Sent: 3}, PhaseSent},
		{Finished, true, Progress{Audience: 3, Sent: 2, OptedOut: 1}, PhaseSent},
		{Finished, true, Progress{Audience: 3, Sent: 2, Refused: 1}, PhaseSentWithProblems},
		{Finished, true, Progress{Audience: 3, Sent: 1, Invalid: 1, Failed: 1}, PhaseSentWithProblems},
		{Finished, true, Progress{Audience: 3, Failed: 3}, PhaseNotSent},
		{Finished, true, Progress{Audience: 3, OptedOut: 3}, PhaseNotSent},
	} {
		c := Campaign{Status: tt.status, Begun: tt.begun, Progress: tt.is}
		if got := c.Phase(); got != tt.want {
			t.Errorf("%s, %+v: %s, want %s", tt.status, tt.is, got, tt.want)
		}
	}
}
