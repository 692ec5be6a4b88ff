package recurring_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/broadcast"
	"github.com/sendquota/sendquota/internal/campaign"
	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/recurrence"
	"github.com/sendquota/sendquota/internal/recurring"
	"github.com/sendquota/sendquota/internal/testenv"
)

// waiting waits until n statements like this one wait for a lock.
func (b *bundle) waiting(n int, like string) {
	b.t.Helper()
	testenv.Until(b.t, time.Millisecond, like+" waits", func() bool {
		return testenv.Query[int](b.t, b.url, `SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE $1 AND datname = current_database()`, like) == n
	})
}

// TestPatterns_Deleted: a draft that is the pattern of schedules cannot be deleted until the last of them is deleted,
// or has another pattern. The refusal names them.
func TestPatterns_Deleted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	of := b.pattern(broadcast.Draft, 1)
	first, second := b.everyHour(of, recurring.Change{}), b.everyHour(of, recurring.Change{})
	testenv.Exec(t, b.url, `UPDATE schedules SET next_at = NULL WHERE id = $1`, second.ID) // it has ended, and can continue
	refused := func(names ...uuid.UUID) {
		t.Helper()
		var state *broadcast.StateError
		if err := b.campaigns.DeleteDraft(t.Context(), b.tenant, of); !errors.As(err, &state) || state.Campaign.ID != of {
			t.Fatalf("%v", err)
		}
		for _, p := range []recurrence.Schedule{first, second} {
			named := false
			for _, id := range names {
				named = named || id == p.ID
			}
			if strings.Contains(state.Detail, p.ID.String()) != named {
				t.Errorf("%s", state.Detail)
			}
		}
	}
	refused(first.ID, second.ID)
	other := b.pattern(broadcast.Draft, 1)
	if _, err := b.Change(t.Context(), b.tenant, first.ID, recurring.Change{Campaign: &other}, nil); err != nil {
		t.Fatal(err)
	}
	refused(second.ID)
	if err := b.DeleteSchedule(t.Context(), b.tenant, second.ID); err != nil {
		t.Fatal(err)
	}
	if err := b.campaigns.DeleteDraft(t.Context(), b.tenant, of); err != nil {
		t.Errorf("%v", err)
	}
	for range 12 {
		b.everyHour(other, recurring.Change{})
	}
	if err := b.campaigns.DeleteDraft(t.Context(), b.tenant, other); err == nil || strings.Count(err.Error(), "-") != 10*4 || !strings.Contains(err.Error(), "and others") {
		t.Errorf("%v", err)
	}
}

// TestPatterns_DeletedMeanwhile: if a campaign is deleted after a schedule's request was checked, and before it takes
// effect, the request fails.
func TestPatterns_DeletedMeanwhile(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	p := b.everyHour(b.pattern(broadcast.Draft, 1), recurring.Change{})
	for _, row := range []struct {
		name, lock, waits string
		do                func(of uuid.UUID) error
	}{
		{"create", `SELECT FROM tenants FOR UPDATE`, `%FROM tenants WHERE id%`, func(of uuid.UUID) error {
			_, _, err := b.Create(t.Context(), b.tenant, recurring.Change{Cron: new("@daily"), Campaign: &of}, recurring.Key{})
			return err
		}},
		{"change", `SELECT FROM schedules FOR UPDATE`, `%FROM schedules p%FOR NO KEY UPDATE%`, func(of uuid.UUID) error {
			_, err := b.Change(t.Context(), b.tenant, p.ID, recurring.Change{Campaign: &of}, nil)
			return err
		}},
	} {
		of := b.pattern(broadcast.Draft, 1)
		tx, err := testenv.Connect(t, b.url).Begin(t.Context())
		testenv.Check(t, err)
		_, err = tx.Exec(t.Context(), row.lock)
		testenv.Check(t, err)
		done := make(chan error, 1)
		go func() { done <- row.do(of) }()
		b.waiting(1, row.waits)
		if err := b.campaigns.DeleteDraft(t.Context(), b.tenant, of); err != nil {
			t.Fatalf("%s: %v", row.name, err)
		}
		testenv.Check(t, tx.Rollback(t.Context()))
		var bad invalid.FieldErrors
		if err := <-done; !errors.As(err, &bad) || len(bad) != 1 || bad[0].Field != "campaign" {
			t.Errorf("%s: %v", row.name, err)
		}
	}
	if n := testenv.Query[int](t, b.url, `SELECT count(*) FROM schedules s WHERE NOT EXISTS (SELECT FROM campaigns c WHERE c.id = s.campaign_id)`); n != 0 {
		t.Errorf("%d schedules without their pattern", n)
	}
}

// TestPatterns_GivenMeanwhile: a drafting caller's change of a campaign, and anyone's deletion, wait for a schedule
// that is being given the campaign, and are refused.
func TestPatterns_GivenMeanwhile(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	p := b.everyHour(b.pattern(broadcast.Draft, 1), recurring.Change{})
	testenv.Exec(t, b.url, `
		CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_advisory_xact_lock(7); RETURN NEW; END';
		CREATE TRIGGER wait BEFORE UPDATE ON schedules FOR EACH ROW EXECUTE FUNCTION wait()`)
	editor := push.Caller{Tenant: b.tenant, Scopes: []string{push.ScopeCampaignsDraft}}
	for name, begin := range map[string]func(of uuid.UUID) (end func() error){
		"delete": func(of uuid.UUID) func() error {
			return func() error { return b.campaigns.DeleteDraft(t.Context(), b.tenant, of) }
		},
		"change": func(of uuid.UUID) func() error {
			return func() error {
				_, err := b.campaigns.Change(t.Context(), editor, of, campaign.Change{Name: new("other")}, nil)
				return err
			}
		},
		"upload": func(of uuid.UUID) func() error {
			upload, err := b.campaigns.Upload(t.Context(), editor, of)
			testenv.Check(t, err)
			return func() error { _, err := upload.End(t.Context()); return err }
		},
	} {
		of := b.pattern(broadcast.Draft, 1)
		end := begin(of)
		tx, err := testenv.Connect(t, b.url).Begin(t.Context())
		testenv.Check(t, err)
		_, err = tx.Exec(t.Context(), `SELECT pg_advisory_xact_lock(7)`)
		testenv.Check(t, err)
		changed, ended := make(chan error, 1), make(chan error, 1)
		go func() { // it has the campaign, and waits for its schedule to be written
			_, err := b.Change(t.Context(), b.tenant, p.ID, recurring.Change{Campaign: &of}, nil)
			changed <- err
		}()
		b.waiting(1, `UPDATE schedules%`)
		go func() { ended <- end() }()
		testenv.Until(t, time.Millisecond, name+" waits, or has ended", func() bool {
			return len(ended) > 0 || testenv.Query[bool](t, b.url, `SELECT count(*) > 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`)
		})
		testenv.Check(t, tx.Rollback(t.Context()))
		if err := <-changed; err != nil {
			t.Error(err)
		}
		err = <-ended
		state, isState := errors.AsType[*broadcast.StateError](err)
		scope, isScope := errors.AsType[*push.ScopeError](err)
		if !(isState && strings.Contains(state.Detail, p.ID.String())) && !(isScope && scope.Scope == push.ScopeCampaignsWrite && strings.Contains(scope.Detail, p.ID.String())) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
