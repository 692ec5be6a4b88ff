package campaign_test

import (
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/broadcast"
	"github.com/sendquota/sendquota/internal/campaign"
)

// TestRunner_Phase: a campaign that is booked for later is scheduled, also after a pause. It is sending from the time
// when its first push is due, during an attempt, and between two attempts.
func TestRunner_Phase(t *testing.T) {
	t.Parallel()
	b := setupRunning(t)
	w := b.worker(b.store)
	ahead := b.draft(20, campaign.Change{SendAt: new(time.Now().Add(24 * time.Hour).Truncate(time.Second))})
	wants := func(c broadcast.Campaign, status broadcast.Status, want broadcast.Phase) {
		t.Helper()
		page, err := b.Campaigns(t.Context(), b.tenant, status, broadcast.Position{}, 10)
		if got := b.read(c); err != nil || got.Status != status || got.Phase() != want {
			t.Errorf("%s, %s, want %s, %s; %v", got.Status, got.Phase(), status, want, err)
		}
		for _, listed := range page.Campaigns {
			if listed.ID == c.ID && listed.Phase() != want {
				t.Errorf("the list has %s, want %s", listed.Phase(), want)
			}
		}
	}
	if c := b.act(ahead, broadcast.Start); c.Phase() != broadcast.PhaseScheduled {
		t.Errorf("it starts as %s", c.Phase())
	}
	b.until(w, ahead, broadcast.Running)
	wants(ahead, broadcast.Running, broadcast.PhaseScheduled)
	b.act(ahead, broadcast.Pause)
	b.until(w, ahead, broadcast.Paused)
	wants(ahead, broadcast.Paused, broadcast.PhasePaused)
	if c := b.act(ahead, broadcast.Resume); c.Phase() != broadcast.PhaseScheduled {
		t.Errorf("it is resumed as %s", c.Phase())
	}

	due := b.draft(2, campaign.Change{})
	b.act(due, broadcast.Start)
	b.until(w, due, broadcast.Running)
	wants(due, broadcast.Running, broadcast.PhaseSending)
	b.act(due, broadcast.Pause)
	b.until(w, due, broadcast.Paused)
	if c := b.act(due, broadcast.Resume); c.Phase() != broadcast.PhaseSending {
		t.Errorf("it is resumed as %s", c.Phase())
	}
	b.exec(`UPDATE live SET next_at = send_at + interval '1 hour' WHERE campaign_id = $1 AND push_id <> (SELECT push_id FROM live WHERE campaign_id = $1 LIMIT 1)`, due.ID)
	b.exec(`UPDATE live SET attempts = 1, next_at = clock_timestamp() + interval '1 minute' WHERE campaign_id = $1 AND next_at < clock_timestamp()`, due.ID)
	wants(due, broadcast.Running, broadcast.PhaseSending)
}
