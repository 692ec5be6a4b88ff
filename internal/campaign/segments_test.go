package campaign_test

import (
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/broadcast"
	"github.com/sendquota/sendquota/internal/campaign"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/testenv"
)

// TestCampaign_Segments checks that a campaign counts the segments of the texts that were sent, while it runs and after its end,
// when its pushes may be gone.
func TestCampaign_Segments(t *testing.T) {
	t.Parallel()
	b := setupRunning(t)
	w := b.worker(b.store)
	c := b.draft(3, campaign.Change{})
	c = b.act(c, broadcast.Start)
	c = b.until(w, c, broadcast.Running)
	testenv.Until(t, 10*time.Millisecond, "all are due", func() bool {
		return testenv.Query[int](t, b.url, `SELECT count(*)::int FROM live WHERE next_at <= clock_timestamp()`) == 3
	})
	for _, f := range []booking.Finish{
		{Outcome: push.Delivered, Segments: 2, Resolution: push.Resolution{Status: push.Sent}},
		{Outcome: push.Refused, Segments: 7, Resolution: push.Resolution{Status: push.Failed}},
		{Outcome: push.Delivered, Segments: 3, Resolution: push.Resolution{Status: push.Sent}},
	} {
		f.Attempt = b.claimOne().Attempted()
		if _, err := b.store.Finish(t.Context(), f); err != nil {
			t.Fatal(err)
		}
	}
	if got := b.read(c); got.Segments != 5 || got.Progress.Sent != 2 {
		t.Errorf("%d segments of %d texts were sent", got.Segments, got.Progress.Sent)
	}
	b.hurry()
	c = b.until(w, c, broadcast.Finished)
	b.exec(`DELETE FROM pushes`)
	b.exec(`DELETE FROM stat_deltas`)
	b.exec(`DELETE FROM stats`)
	if got := b.read(c); got.Segments != 5 {
		t.Errorf("after its end, %d segments", got.Segments)
	}
}
