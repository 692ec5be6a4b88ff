package recurring_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/broadcast"
	"github.com/sendquota/sendquota/internal/campaign"
	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/recurrence"
	"github.com/sendquota/sendquota/internal/recurring"
	"github.com/sendquota/sendquota/internal/testenv"
)

// pattern creates a campaign in a state, with recipients.
func (b *bundle) pattern(status broadcast.Status, recipients int) uuid.UUID {
	b.t.Helper()
	id, audience := uuid.New(), uuid.New()
	testenv.Exec(b.t, b.url, `
		INSERT INTO campaigns (id, tenant_id, name, channel, category, send_at, latest, spread_s, on_conflict, expires_after_ms, message, status, audience_id, audience, started_at, ended_at)
		VALUES ($1, $2, 'Digest', 'log', 'news', '2020-01-01T09:00:00Z', '2020-01-01T12:00:00Z', 60, 'defer', 3600000, '{"title":"hello"}', $3, $4, $5, '2020-01-01T08:00:00Z',
			CASE WHEN $3 IN ('finished', 'canceled') THEN now() END)`, id, b.tenant, string(status), audience, recipients)
	testenv.Exec(b.t, b.url, `
		INSERT INTO campaign_recipients (shard, audience_id, recipient_key, recipient, tenant_id, campaign_id, line, variables, outcome, reason)
		SELECT n & 255, $1, n, 'user-' || n, $2, $3, n + 1, '{"city":"Aarhus"}', 'booked', 'x' FROM generate_series(1, $4) n`, audience, b.tenant, id, recipients)
	return id
}

// copies counts the copied campaigns, and their recipients that are to be booked.
func (b *bundle) copies() (campaigns, recipients int) {
	b.t.Helper()
	campaigns = testenv.Query[int](b.t, b.url, `SELECT count(*) FROM campaigns WHERE name LIKE 'Digest 20%' AND status = 'starting' AND send_at IS NULL AND local_time IS NULL
		AND channel = 'log' AND category = 'news' AND spread_s = 60 AND on_conflict = 'defer' AND expires_after_ms = 3600000 AND message->>'title' = 'hello'
		AND latest BETWEEN now() + interval '2 hours' AND now() + interval '3 hours'`)
	recipients = testenv.Query[int](b.t, b.url, `SELECT count(*) FROM campaign_recipients r JOIN campaigns c ON c.audience_id = r.audience_id AND c.id = r.campaign_id
		WHERE c.status = 'starting' AND r.outcome IS NULL AND r.reason = '' AND r.variables->>'city' = 'Aarhus'`)
	return campaigns, recipients
}

// everyHour creates a schedule of a campaign that was due a second ago, and is due again long after the test.
func (b *bundle) everyHour(of uuid.UUID, c recurring.Change) recurrence.Schedule {
	b.t.Helper()
	c.Cron, c.Campaign, c.Pattern = new("@every 1h"), &of, nil
	p, _, err := b.Create(b.t.Context(), b.tenant, c, recurring.Key{})
	if err != nil {
		b.t.Fatal(err)
	}
	b.ageHours(p.ID, time.Hour+time.Second)
	return p
}

// TestCampaigns: an occurrence starts a campaign that equals its pattern, with all recipients that were not erased.
func TestCampaigns(t *testing.T) {
	t.Parallel()
	b := setup(t)
	of := b.pattern(broadcast.Finished, 12_001)
	testenv.Exec(t, b.url, `UPDATE campaign_recipients SET recipient = '' WHERE line = 7`)
	p, _, err := b.Create(t.Context(), b.tenant, recurring.Change{Cron: new("@every 1m"), Campaign: &of}, recurring.Key{})
	testenv.Check(t, err)
	b.age(p.ID, 61*time.Second)
	b.pass()
	b.want(p, "submitted")
	if campaigns, recipients := b.copies(); campaigns != 1 || recipients != 12_000 {
		t.Errorf("%d campaigns with %d recipients", campaigns, recipients)
	}
	made := b.runs(p)[0].Campaign
	if c, err := b.store.Campaign(t.Context(), b.tenant, made); err != nil || c.Size != 12_000 {
		t.Errorf("%+v, %v", c, err)
	}
	b.pass()
	b.age(p.ID, 90*time.Second)
	b.pass()
	b.want(p, "submitted", "submitted")
	if campaigns, _ := b.copies(); campaigns != 2 {
		t.Errorf("%d campaigns", campaigns)
	}
}

// stumbling copies campaigns, and fails after most steps, as if the worker had died there.
type stumbling struct {
	*campaign.Service
	mu    sync.Mutex
	steps int
}

func (s *stumbling) StartCopy(ctx context.Context, c broadcast.Copy) (bool, error) {
	done, err := s.Service.StartCopy(ctx, c)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.steps++; s.steps%4 != 0 {
		return false, errors.New("died")
	}
	return done, err
}

// TestCampaigns_Once: concurrent workers that die after any step start one campaign for each occurrence.
func TestCampaigns_Once(t *testing.T) {
	t.Parallel()
	b := setup(t)
	of := b.pattern(broadcast.Draft, 11_000)
	var all []recurrence.Schedule
	for range 3 {
		all = append(all, b.everyHour(of, recurring.Change{}))
	}
	dying := &stumbling{Service: b.campaigns}
	testenv.Until(t, time.Millisecond, "each has happened", func() bool {
		var workers sync.WaitGroup
		for range 4 {
			workers.Go(func() { passAll(t, recurring.NewRunner(b.store, b.pushes, dying, quiet, 0)) })
		}
		workers.Wait()
		return testenv.Query[bool](t, b.url, `SELECT bool_and(outcome IS NOT NULL) FROM schedule_runs`)
	})
	for _, p := range all {
		b.want(p, "submitted")
	}
	if campaigns, recipients := b.copies(); campaigns != 3 || recipients != 33_000 {
		t.Errorf("%d campaigns with %d recipients", campaigns, recipients)
	}
	if uploads := testenv.Query[int](t, b.url, `SELECT count(*) FROM campaign_uploads`); uploads != 3 {
		t.Errorf("%d copies were begun", uploads)
	}
}

// TestCampaigns_AudienceOfTheMoment: a copy in progress keeps the audience that it has begun with.
func TestCampaigns_AudienceOfTheMoment(t *testing.T) {
	t.Parallel()
	b := setup(t)
	c := broadcast.Copy{ID: uuid.New(), Tenant: b.tenant, Of: b.pattern(broadcast.Draft, 6000), Suffix: " 2026"}
	if done, err := b.campaigns.StartCopy(t.Context(), c); done || err != nil {
		t.Fatal(done, err)
	}
	testenv.Exec(t, b.url, `INSERT INTO campaign_uploads (id, tenant_id, campaign_id, alive_until, ended) SELECT audience_id, tenant_id, id, 'infinity', true FROM campaigns WHERE id = $1`, c.Of)
	testenv.Exec(t, b.url, `UPDATE campaigns SET audience_id = gen_random_uuid(), audience = 1 WHERE id = $1`, c.Of)
	sweep := func() int {
		n, err := b.store.SweepUploads(t.Context(), 0, 10_000)
		if err != nil {
			t.Error(err)
		}
		return n
	}
	if n := sweep(); n != 0 {
		t.Errorf("%d recipients were removed while they were copied", n)
	}
	if done, err := b.campaigns.StartCopy(t.Context(), c); !done || err != nil {
		t.Fatal(done, err)
	}
	if n := sweep(); n != 6000 {
		t.Errorf("%d recipients were removed afterwards", n)
	}
	if campaigns, recipients := b.copies(); campaigns != 1 || recipients != 6000 {
		t.Errorf("%d campaigns with %d recipients", campaigns, recipients)
	}
}

// TestCampaigns_Refused: a pattern that can no longer be copied leaves a run with the reason.
func TestCampaigns_Refused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, row := range []struct {
		name, want, then string
		of               uuid.UUID
	}{
		{"no audience", "refused campaign-state", `UPDATE campaigns SET audience_id = NULL, audience = 0 WHERE id = $1`, b.pattern(broadcast.Draft, 1)},
		{"all erased", "refused campaign-state", `UPDATE campaign_recipients SET recipient = '' WHERE campaign_id = $1`, b.pattern(broadcast.Draft, 1)},
		{"started", "refused campaign-state", `UPDATE campaigns SET status = 'running' WHERE id = $1`, b.pattern(broadcast.Draft, 1)},
		{"deleted", "refused not-found", `DELETE FROM campaigns WHERE id = $1`, b.pattern(broadcast.Draft, 1)},
		{"channel gone", "refused invalid-request", `UPDATE campaigns SET channel = 'pigeon' WHERE id = $1`, b.pattern(broadcast.Draft, 1)},
		{"too many", "refused too-many-campaigns",
			`INSERT INTO campaigns (id, tenant_id, name, channel, message) SELECT gen_random_uuid(), tenant_id, '', '', '{}' FROM campaigns, generate_series(1, 100) WHERE id = $1`, b.pattern(broadcast.Draft, 1)},
	} {
		p := b.everyHour(row.of, recurring.Change{})
		testenv.Exec(t, b.url, row.then, row.of)
		b.pass()
		if got := strings.Join(b.outcomes(p), ", "); got != row.want {
			t.Errorf("%s: %s", row.name, got)
		}
	}
	if n := testenv.Query[int](t, b.url, `SELECT count(*) FROM campaigns WHERE name LIKE 'Digest 20%'`); n != 0 {
		t.Errorf("%d campaigns were made", n)
	}
}

// TestCampaigns_Missed: an occurrence that was not started for ten minutes is missed, and leaves no campaign.
func TestCampaigns_Missed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	of := b.pattern(broadcast.Finished, 3)
	skipped, caught := b.everyHour(of, recurring.Change{}), b.everyHour(of, recurring.Change{CatchUp: new(recurrence.Last)})
	passAll(t, recurring.NewRunner(&beginner{b.store}, b.pushes, b.campaigns, quiet, 0))
	testenv.Exec(t, b.url, `UPDATE schedule_runs SET begun_at = now() - interval '11 minutes'`)
	b.pass()
	b.want(skipped, "skipped missed")
	b.want(caught, "submitted")
	if campaigns, _ := b.copies(); campaigns != 1 {
		t.Errorf("%d campaigns", campaigns)
	}
}

// TestCampaigns_Checked: the pattern must be a campaign of the tenant, and a draft or finished.
func TestCampaigns_Checked(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, row := range []struct {
		name string
		of   uuid.UUID
		by   uuid.UUID
		ok   bool
	}{
		{"draft", b.pattern(broadcast.Draft, 1), b.tenant, true},
		{"finished", b.pattern(broadcast.Finished, 1), b.tenant, true},
		{"running", b.pattern(broadcast.Running, 1), b.tenant, false},
		{"canceled", b.pattern(broadcast.Canceled, 1), b.tenant, false},
		{"unknown", uuid.New(), b.tenant, false},
		{"another's", b.pattern(broadcast.Draft, 1), b.newTenant(), false},
	} {
		_, _, err := b.Create(t.Context(), row.by, recurring.Change{Cron: new("@daily"), Campaign: &row.of}, recurring.Key{})
		var bad invalid.FieldErrors
		if errors.As(err, &bad) == row.ok || !row.ok && bad[0].Field != "campaign" {
			t.Errorf("%s: %v", row.name, err)
		}
	}
}
