package campaign_test

import (
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/broadcast"
	"github.com/sendquota/sendquota/internal/campaign"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/schedule"
	"github.com/sendquota/sendquota/internal/testenv"
)

// TestRunner_Retried: the retry of a campaign's push names the campaign, but does not change its numbers or its end,
// and actions on the campaign do not affect the retry.
func TestRunner_Retried(t *testing.T) {
	t.Parallel()
	b := setupRunning(t)
	w := b.worker(b.store)
	c := b.draft(3, campaign.Change{})
	b.act(c, broadcast.Start)
	b.until(w, c, broadcast.Running)
	claim := b.claimOne()
	b.finish(claim, push.Refused, push.Failed)

	retry, err := b.pushes.Retry(t.Context(), b.tenant, claim.Push.ID, schedule.Request{}, schedule.Options{})
	if err != nil || retry.Push.Campaign != c.ID {
		t.Fatalf("%+v, %v", retry.Push, err)
	}
	if c = b.read(c); c.Progress.Failed != 1 || c.Progress.Scheduled != 2 {
		t.Errorf("after a retry: %+v", c.Progress)
	}
	b.adds(c)
	b.act(c, broadcast.Pause)
	if n := b.deliver(); n != 1 {
		t.Errorf("%d pushes were sent in the pause, want the retry", n)
	}
	if got, err := b.pushes.Push(t.Context(), b.tenant, retry.Push.ID); err != nil || got.Status != push.Sent || got.Campaign != c.ID {
		t.Errorf("%+v, %v", got, err)
	}
	b.until(w, c, broadcast.Paused)
	b.act(c, broadcast.Resume)
	for i := 0; i < 100 && testenv.Query[bool](t, b.url, `SELECT parked FROM campaigns`); i++ {
		b.hurry()
		if _, err := w.Pass(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := b.deliver(); n != 2 {
		t.Errorf("%d pushes were sent", n)
	}
	later, err := b.pushes.Retry(t.Context(), b.tenant, claim.Push.ID, schedule.Request{SendAt: time.Now().Add(time.Hour)}, schedule.Options{})
	if err != nil || later.Outcome != booking.Retried || later.Push.ID != retry.Push.ID {
		t.Errorf("%+v, %v", later, err)
	}
	if c = b.until(w, c, broadcast.Finished); c.Progress.Sent != 2 || c.Progress.Failed != 1 {
		t.Errorf("%+v", c.Progress)
	}
	b.adds(c)
	if got := testenv.Query[string](t, b.url, `SELECT string_agg(what || ' ' || n, ', ' ORDER BY what, n) FROM (SELECT what, sum(n) AS n FROM stat_deltas WHERE campaign_id IS NULL GROUP BY what) t`); got != "accepted 1, sent 1" {
		t.Errorf("the numbers without a campaign: %s", got)
	}
}
