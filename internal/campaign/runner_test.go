package campaign_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/broadcast"
	"github.com/sendquota/sendquota/internal/campaign"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/schedule"
	"github.com/sendquota/sendquota/internal/testenv"
)

// TestRunner_Life: a started campaign is booked, sent and finished, and webhooks get an event for each step, once.
func TestRunner_Life(t *testing.T) {
	t.Parallel()
	b := setupRunning(t)
	b.exec(`INSERT INTO webhooks (id, tenant_id, url, events, secret) VALUES (gen_random_uuid(), $1, 'https://example.com', '{campaign.started,campaign.progress,campaign.finished}', 's')`, b.tenant)
	w := b.worker(b.store)
	c := b.draft(1200, campaign.Change{})
	if c = b.act(c, broadcast.Start); c.Status != broadcast.Starting || c.StartedAt.IsZero() || c.Progress.Pending != 1200 {
		t.Fatalf("%+v", c)
	}
	again := b.act(c, broadcast.Start)
	if !again.StartedAt.Equal(c.StartedAt) {
		t.Errorf("started again at %s", again.StartedAt)
	}
	c = b.until(w, c, broadcast.Running)
	b.adds(c)
	b.once(c)
	if n := b.deliver(); n != 1200 {
		t.Errorf("%d pushes were sent", n)
	}
	c = b.until(w, c, broadcast.Finished)
	if b.adds(c); c.Progress.Sent != 1200 || c.EndedAt.IsZero() {
		t.Errorf("%+v", c)
	}
	events := testenv.Query[string](t, b.url, `SELECT string_agg(event || ' ' || (payload->'data'->>'percent'), ', ' ORDER BY seq) FROM webhook_deliveries`)
	want := "campaign.started 0, campaign.progress 10, campaign.progress 20, campaign.progress 30, campaign.progress 40, campaign.progress 50, campaign.progress 60, " +
		"campaign.progress 70, campaign.progress 80, campaign.progress 90, campaign.progress 100, campaign.finished 100"
	if events != want {
		t.Errorf("events: %s", events)
	}
}

// TestRunner_Pause: after the answer to a pause, no push of the campaign is sent. All are sent after it is resumed. A
// pause in the middle of the start keeps the rest from being booked.
func TestRunner_Pause(t *testing.T) {
	t.Parallel()
	b := setupRunning(t)
	w := b.worker(b.store)
	c := b.draft(1200, campaign.Change{})
	b.act(c, broadcast.Start)
	if _, err := w.Pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c = b.act(c, broadcast.Pause); c.Status != broadcast.Pausing || c.Progress.Pending == 0 || c.Progress.Scheduled == 0 {
		t.Fatalf("%+v", c)
	}
	if n := b.deliver(); n > 0 {
		t.Errorf("%d pushes were sent in the pause", n)
	}
	booked := c.Progress.Scheduled
	c = b.until(w, c, broadcast.Paused)
	if b.adds(c); c.Progress.Scheduled != booked {
		t.Errorf("%d are booked, before %d", c.Progress.Scheduled, booked)
	}
	if b.deliver() > 0 {
		t.Error("pushes were sent in the pause")
	}
	if c = b.act(c, broadcast.Resume); c.Status != broadcast.Starting {
		t.Errorf("resumed as %s", c.Status)
	}
	c = b.until(w, c, broadcast.Running)
	b.once(c)
	if n := b.deliver(); n != 1200 {
		t.Errorf("%d pushes were sent", n)
	}
	if c = b.until(w, c, broadcast.Finished); c.Progress.Sent != 1200 {
		t.Errorf("%+v", c.Progress)
	}
}

// TestRunner_PauseAll: waiting pushes of a paused campaign are never due, except a push that is moved. Pushes that
// expire meanwhile end.
func TestRunner_PauseAll(t *testing.T) {
	t.Parallel()
	b := setupRunning(t)
	w := b.worker(b.store)
	c := b.draft(30, campaign.Change{SendAt: new(time.Now().Add(time.Hour))})
	b.act(c, broadcast.Start)
	b.until(w, c, broadcast.Running)
	b.act(c, broadcast.Pause)
	b.until(w, c, broadcast.Paused)
	if n := testenv.Query[int](t, b.url, `SELECT count(*) FROM live WHERE next_at = 'infinity'`); n != 30 {
		t.Errorf("%d are parked", n)
	}
	p := testenv.Query[[16]byte](t, b.url, `SELECT push_id FROM campaign_recipients WHERE recipient = 'user-7'`)
	if _, err := b.pushes.Reschedule(t.Context(), b.tenant, p, schedule.When{SendAt: time.Now().Add(time.Second)}, schedule.Options{}); err != nil {
		t.Fatal(err)
	}
	if n := testenv.Query[int](t, b.url, `SELECT count(*) FROM live WHERE next_at = 'infinity'`); n != 30 {
		t.Errorf("%d are parked after a move", n)
	}
	other := testenv.Query[[16]byte](t, b.url, `SELECT push_id FROM campaign_recipients WHERE recipient = 'user-8'`)
	if _, err := b.pushes.Cancel(t.Context(), b.tenant, other); err != nil {
		t.Fatal(err)
	}
	late := testenv.Query[[16]byte](t, b.url, `SELECT push_id FROM campaign_recipients WHERE recipient = 'user-9'`)
	b.exec(`UPDATE live SET expires_at = clock_timestamp() - interval '1 second' WHERE push_id = $1`, late)
	b.exec(`UPDATE pushes SET expires_at = clock_timestamp() - interval '1 second' WHERE id = $1`, late)
	b.hurry()
	if _, err := w.Pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	c = b.read(c)
	if b.adds(c); c.Progress.Expired != 1 || c.Progress.Canceled != 1 || c.Progress.Scheduled != 28 {
		t.Errorf("%+v", c.Progress)
	}
	due := uuid.UUID(testenv.Query[[16]byte](t, b.url, `SELECT push_id FROM campaign_recipients WHERE recipient = 'user-10'`))
	b.exec(`UPDATE pushes SET next_at = clock_timestamp() - interval '1 minute' WHERE id = $1`, due)
	b.exec(`UPDATE live SET next_at = 'infinity' WHERE push_id = $1`, due) // as it was
	held := func() push.Hold {
		p, err := b.store.Push(t.Context(), b.tenant, due)
		if err != nil {
			t.Fatal(err)
		}
		return p.Held
	}
	if h := held(); h.By != push.PausedCampaign || h.Since.IsZero() || !h.Until.IsZero() {
		t.Errorf("held by %+v", h)
	}
	b.act(c, broadcast.Resume)
	for i := 0; i < 100 && testenv.Query[bool](t, b.url, `SELECT parked FROM campaigns`); i++ {
		b.hurry()
		if _, err := w.Pass(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := testenv.Query[string](t, b.url, `SELECT string_agg(DISTINCT (l.next_at = p.next_at)::text, ' ') FROM live l JOIN pushes p ON p.id = l.push_id`); got != "true" {
		t.Errorf("what waits is to be tried at its time: %s", got)
	}
	if h := held(); h.By != push.PausedCampaign || !h.Until.After(h.Since) {
		t.Errorf("held by %+v", h)
	}
	if n := testenv.Query[int](t, b.url, `SELECT count(*) FROM pushes WHERE held_by <> ''`); n != 1 {
		t.Errorf("the pause held %d pushes, want the one that was due", n)
	}
}

// TestRunner_Cancel: a cancel frees all places, and drops recipients that were not booked yet. An attempt under way
// finishes, and is not retried.
func TestRunner_Cancel(t *testing.T) {
	t.Parallel()
	rule := quota.Rule{Name: "hour", Limit: 1, Window: time.Hour}
	b := setupRunning(t, rule)
	w := b.worker(b.store)
	c := b.draft(1200, campaign.Change{})
	b.act(c, broadcast.Start)
	if _, err := w.Pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	claim := b.claimOne()
	if c = b.act(c, broadcast.Cancel); c.Status != broadcast.Canceling {
		t.Fatalf("%+v", c)
	}
	if b.deliver() > 0 {
		t.Error("pushes were sent after the cancel")
	}
	for i := 0; i < 20; i++ {
		b.hurry()
		if _, err := w.Pass(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if c = b.read(c); c.Status != broadcast.Canceling || c.Progress.Scheduled != 1 || c.Progress.Canceled != 1199 {
		t.Errorf("one is under way: %+v", c)
	}
	b.finish(claim, push.Refused, push.Scheduled)
	c = b.until(w, c, broadcast.Canceled)
	if b.adds(c); c.Progress.Canceled != 1200 {
		t.Errorf("%+v", c.Progress)
	}
	if n := testenv.Query[int](t, b.url, `SELECT count(*) FROM live`); n > 0 {
		t.Errorf("%d cursor are held", n)
	}
	if again := b.act(c, broadcast.Cancel); again.Status != broadcast.Canceled {
		t.Errorf("canceled again: %s", again.Status)
	}
	next := b.draft(1200, campaign.Change{})
	b.act(next, broadcast.Start)
	if next = b.until(w, next, broadcast.Running); next.Progress.Scheduled != 1200 {
		t.Errorf("the cursor are not free: %+v", next.Progress)
	}
}

// TestService_Act_States: an action that the state does not allow is refused with the campaign.
func TestService_Act_States(t *testing.T) {
	t.Parallel()
	b := setupRunning(t)
	empty := b.draft(0, campaign.Change{})
	full := b.draft(1, campaign.Change{})
	refused := func(c broadcast.Campaign, action broadcast.Action, want string) {
		t.Helper()
		_, err := b.Act(t.Context(), b.tenant, c.ID, action, nil)
		state, ok := errors.AsType[*broadcast.StateError](err)
		if !ok || state.Detail != want || state.Campaign.ID != c.ID {
			t.Errorf("%s: %v, want %s", action, err, want)
		}
	}
	refused(empty, broadcast.Start, "the campaign has no audience; upload one first")
	refused(full, broadcast.Pause, "the campaign is draft; it cannot be paused")
	refused(full, broadcast.Resume, "the campaign is draft; it cannot be resumed")
	refused(full, broadcast.Cancel, "the campaign is draft; it cannot be canceled")
	b.act(full, broadcast.Start)
	b.act(full, broadcast.Pause)
	refused(full, broadcast.Start, "the campaign is pausing; it cannot be started")
	b.act(full, broadcast.Cancel)
	refused(full, broadcast.Resume, "the campaign is canceling; it cannot be resumed")
	past := b.draft(1, campaign.Change{})
	b.exec(`UPDATE campaigns SET send_at = clock_timestamp() - interval '2 minutes' WHERE id = $1`, past.ID)
	if _, err := b.Act(t.Context(), b.tenant, past.ID, broadcast.Start, nil); err == nil || b.read(past).Status != broadcast.Draft {
		t.Errorf("a start in the past: %v", err)
	}
}

// TestSweepCampaigns: the recipients of a campaign that ended long ago are removed, and its counts stay.
func TestSweepCampaigns(t *testing.T) {
	t.Parallel()
	b := setupRunning(t)
	w := b.worker(b.store)
	c, fresh := b.draft(500, campaign.Change{}), b.draft(3, campaign.Change{SendAt: new(time.Now().Add(time.Hour))})
	for _, one := range []broadcast.Campaign{c, fresh} {
		b.act(one, broadcast.Start)
		b.until(w, one, broadcast.Running)
		b.act(one, broadcast.Cancel)
		b.until(w, one, broadcast.Canceled)
	}
	b.exec(`UPDATE campaigns SET ended_at = ended_at - interval '2 hours' WHERE id = $1`, c.ID)
	for n := 1; n > 0; {
		var err error
		if n, err = b.store.SweepCampaigns(t.Context(), time.Hour, 200); err != nil {
			t.Fatal(err)
		}
	}
	if n := testenv.Query[int](t, b.url, `SELECT count(*) FROM campaign_recipients`); n != 3 {
		t.Errorf("%d recipients are kept", n)
	}
	c = b.read(c)
	if b.adds(c); c.Progress.Canceled != 500 {
		t.Errorf("%+v", c.Progress)
	}
	if page, err := b.CampaignRecipients(t.Context(), b.tenant, c.ID, broadcast.RecipientFilter{}, 0, 10); err != nil || len(page.Recipients) > 0 {
		t.Errorf("%+v, %v", page, err)
	}
}

// TestRunner_Two: two concurrent workers, one dying now and then, decide each recipient once, also recipients
// of two campaigns. Repeating a start changes nothing.
func TestRunner_Two(t *testing.T) {
	t.Parallel()
	b := setupRunning(t, quota.Rule{Name: "hour", Limit: 1, Window: time.Hour})
	all := []broadcast.Campaign{b.draft(1500, campaign.Change{}), b.draft(1000, campaign.Change{})}
	for _, c := range all {
		b.act(c, broadcast.Start)
	}
	var workers sync.WaitGroup
	for n := range 2 {
		workers.Go(func() {
			ctx, w := t.Context(), b.worker(b.open(4))
			for i := 0; b.going(all); i++ {
				ctx, stop := context.WithCancel(ctx)
				if n == 1 && i%3 == 0 { // it is interrupted anywhere
					time.AfterFunc(time.Duration(i%20)*time.Millisecond, stop)
				}
				_, err := w.Pass(ctx)
				if stop(); err != nil && ctx.Err() == nil {
					t.Error(err)
				}
				b.act(all[0], broadcast.Start)
			}
		})
	}
	workers.Wait()
	var booked int64
	for _, c := range all {
		c = b.read(c)
		b.adds(c)
		b.once(c)
		booked += c.Progress.Scheduled
	}
	if booked != 1500 {
		t.Errorf("%d are booked, want each once", booked)
	}
}

// going reports whether a campaign is being started.
func (b *running) going(all []broadcast.Campaign) bool {
	for _, c := range all {
		if b.read(c).Status == broadcast.Starting {
			return true
		}
	}
	return false
}

// TestRunner_EachShard: a campaign works the same if each shard is a lane.
func TestRunner_EachShard(t *testing.T) {
	t.Parallel()
	b := setupRunning(t)
	w := b.worker(b.open(push.Shards))
	c := b.draft(60, campaign.Change{SendAt: new(time.Now().Add(time.Hour))})
	b.act(c, broadcast.Start)
	c = b.until(w, c, broadcast.Running)
	b.once(c)
	b.act(c, broadcast.Pause)
	b.until(w, c, broadcast.Paused)
	b.audit()
	b.act(c, broadcast.Resume)
	for range 10 {
		b.hurry()
		if _, err := w.Pass(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := testenv.Query[int](t, b.url, `SELECT count(*) FROM live WHERE next_at < 'infinity'`); n != 60 {
		t.Errorf("%d wait for their time", n)
	}
	b.act(c, broadcast.Cancel)
	if c = b.until(w, c, broadcast.Canceled); c.Progress.Canceled != 60 {
		t.Errorf("%+v", c.Progress)
	}
	b.audit()
}

// TestRunner_Caps: campaigns keep the tenant's caps, also if a conflict moves pushes to another day.
func TestRunner_Caps(t *testing.T) {
	t.Parallel()
	b := setupRunning(t, quota.Rule{Name: "day", Limit: 1, Window: 12 * time.Hour})
	b.caps = push.Caps{RecipientsPerDay: 40, PendingPushes: 130}
	w := b.worker(b.store)
	at := time.Now().UTC().Truncate(24 * time.Hour).Add(36 * time.Hour)
	first := b.draft(30, campaign.Change{SendAt: &at})
	b.act(first, broadcast.Start)
	b.until(w, first, broadcast.Running)
	second := b.draft(50, campaign.Change{SendAt: &at, OnConflict: new("defer")}) // 30 move to the next day; 10 of 20 find room
	b.act(second, broadcast.Start)
	second = b.until(w, second, broadcast.Running)
	if b.adds(second); second.Progress.Scheduled != 40 || second.Progress.Deferred != 30 || second.Progress.Refused != 10 {
		t.Errorf("%+v", second.Progress)
	}
	page, err := b.CampaignRecipients(t.Context(), b.tenant, second.ID, broadcast.RecipientFilter{Outcome: broadcast.OutcomeRefused}, 0, 100)
	if err != nil || len(page.Recipients) != 10 || page.Recipients[0].Reason != "tenant-cap-exceeded" {
		t.Errorf("%+v, %v", page, err)
	}
}

// audit checks all guarantees.
func (b *running) audit() {
	b.t.Helper()
	findings, err := b.store.Audit(b.t.Context(), b.policy, time.Now().Add(-48*time.Hour))
	if err != nil {
		b.t.Fatal(err)
	}
	for _, f := range findings {
		b.t.Errorf("audit: %+v", f)
	}
}

// TestRunner_BesideWaiting: a campaign gets its steps, although hundreds of campaigns of another tenant wait for their
// pushes, and as many are being canceled.
func TestRunner_BesideWaiting(t *testing.T) {
	t.Parallel()
	b := setupRunning(t)
	others, _, err := b.store.CreateTenant(t.Context(), "others")
	if err != nil {
		t.Fatal(err)
	}
	for _, status := range []broadcast.Status{broadcast.Running, broadcast.Paused, broadcast.Canceling} {
		b.exec(`
			WITH made AS (
				INSERT INTO campaigns (id, tenant_id, name, channel, message, status, started_at, audience, booked)
				SELECT gen_random_uuid(), $1, 'waits', 'log', '{}', $2, now(), 1, 1 FROM generate_series(1, 300) RETURNING id
			)
			INSERT INTO live (push_id, tenant_id, recipient_key, channel, send_at, next_at, expires_at, plan, rank, phase, shard, campaign_id, token, started_at)
			SELECT gen_random_uuid(), $1, 7, 'log', s, s, s + interval '1 day', 1, 5, 6, 7, id, gen_random_uuid(), now()
			FROM made, LATERAL (SELECT now() + interval '20 days' AS s) p`, others, string(status))
	}
	w := b.worker(b.store)
	c := b.draft(2500, campaign.Change{})
	b.act(c, broadcast.Start)
	passes := 0
	for ; b.read(c).Status == broadcast.Starting; passes++ {
		if _, err := w.Pass(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if most := 2 * (2500/250 + 2*len(push.Lanes(4)) + 2); passes > most { // half of the steps are the other tenant's
		t.Errorf("booked after %d steps; it needs %d", passes, most/2)
	}
}
