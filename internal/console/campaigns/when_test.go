package campaigns

import (
	"testing"

	"github.com/sendquota/sendquota/client"
)

// TestCampaign_SkippedTime shows a notice for a local time that a clock change skips.
func TestCampaign_SkippedTime(t *testing.T) {
	t.Parallel()
	v := &draftView{Campaign: client.Campaign{LocalTime: "2027-03-28T02:30:00", TimeZone: "Europe/Berlin"}}
	if want := "Clocks in Europe/Berlin skip 02:30 on 28 Mar 2027. The campaign is sent right after the change, at 03:00 +02:00."; v.Skipped() != want {
		t.Errorf("%q", v.Skipped())
	}
	if v.LocalTime = "2027-03-28T03:00:00"; v.Skipped() != "" {
		t.Errorf("%q", v.Skipped())
	}
}
