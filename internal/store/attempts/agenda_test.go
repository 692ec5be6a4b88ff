package attempts_test

import (
	"slices"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/store/storetest"

	"github.com/sendquota/sendquota/internal/store/bulk"
	"github.com/sendquota/sendquota/internal/store/campaigns"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/bulkchange"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/internal/webhook"
)

// wantWork compares the work of the owner of lanes, after all statistics were added up.
func (b *bundle) wantWork(t *testing.T, when string, lanes []push.Lane, want ...store.Work) {
	t.Helper()
	for more := true; more; {
		var err error
		if more, err = b.FoldStatDeltas(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	got, err := b.Agenda(t.Context(), lanes)
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); err != nil || diff != "" {
		t.Errorf("%s: %v %s", when, err, diff)
	}
}

// TestAgenda_Pushes checks that due pushes and attempts with an expired lease are work for the owner of the lane.
// Events and statistics to be added up are work for any worker.
func TestAgenda_Pushes(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	all := push.Lanes(1)
	b.wantWork(t, "an empty database", all)
	b.Booked(t, "bert", time.Hour)
	if work, err := b.Agenda(t.Context(), nil); err != nil || !slices.Equal(work, []store.Work{store.FoldStats}) {
		t.Errorf("a booked push: %v, %v", work, err)
	}
	b.wantWork(t, "nothing is due", all)
	p := b.Booked(t, "anna", -time.Second)
	b.wantWork(t, "a push is due", all, store.PushesDue)
	key := push.RecipientKey(b.TenantID, "anna")
	b.wantWork(t, "it is due in an own lane", []push.Lane{push.LaneOf(push.Lanes(8), key)}, store.PushesDue)
	b.wantWork(t, "it is due in another's lane", slices.DeleteFunc(push.Lanes(2), func(l push.Lane) bool { return l == push.LaneOf(push.Lanes(2), key) }))
	hook := b.Hook(t, webhook.EventSent)
	c, err := b.Claim(t.Context(), booking.ClaimOrder{RecipientKey: key, Lease: time.Hour})
	if err != nil || c.Outcome != booking.Claimed {
		t.Fatal(c, err)
	}
	b.wantWork(t, "it is under way", all)
	b.Exec(t, `UPDATE live SET next_at = clock_timestamp() - interval '1 second' WHERE token IS NOT NULL`)
	b.wantWork(t, "its lease has run out", all, store.AttemptsLost)
	b.wantWork(t, "its lease has run out, without lanes", nil)
	b.MustFinish(t, c, storetest.Sent)
	b.wantWork(t, "an event is to be told", nil, store.SendEvents)
	b.Exec(t, `UPDATE webhooks SET disabled_at = clock_timestamp(), disabled_reason = 'requested' WHERE id = $1`, hook.ID)
	b.wantWork(t, "its webhook is switched off", nil)
	b.Exec(t, `UPDATE webhooks SET disabled_at = NULL, disabled_reason = '' WHERE id = $1`, hook.ID)
	out := b.Outgoing(t)
	b.wantWork(t, "the event is being told", nil)
	b.Settle(t, storetest.Never, storetest.Ended(out[0], false))
	b.wantWork(t, "the event is to be told in an hour", nil)
	b.Exec(t, `UPDATE webhook_deliveries SET next_at = clock_timestamp()`)
	b.wantWork(t, "the event is to be told again", all, store.SendEvents)
	b.Settle(t, storetest.Never, storetest.Ended(b.Outgoing(t)[0], true))
	b.wantWork(t, "all is told", all)
	b.WantStatus(t, p, push.Sent)
}

// TestAgenda_Leased checks that a campaign, a bulk change and an operation are work until a worker leases them, and
// again when its lease expires.
func TestAgenda_Leased(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	worker := uuid.New()
	for _, row := range []struct {
		work   store.Work
		table  string
		begins func() error
		takes  func() (taken bool, err error)
	}{
		{store.RunCampaigns, "campaigns", func() error { b.MustCampaign(t, "anna"); return nil }, func() (bool, error) {
			c, err := b.TakeCampaign(t.Context(), worker, campaigns.WithWork, nil)
			return c != nil, err
		}},
		{store.RunBulkChanges, "bulk_changes", func() error {
			p := bulkchange.Change{ID: uuid.New(), Tenant: b.TenantID, Action: bulkchange.Cancel}
			_, _, err := b.CreateBulkChange(t.Context(), bulk.NewChange{Change: p, Most: 5})
			return err
		}, func() (bool, error) {
			p, err := b.TakeBulkChange(t.Context(), worker, nil)
			return p != nil, err
		}},
		{store.RunOperations, "policy_operations", func() error { b.change(t, storetest.NoSends()); return nil }, func() (bool, error) {
			op, err := b.TakeOperation(t.Context(), worker, nil)
			return op != nil, err
		}},
	} {
		if err := row.begins(); err != nil {
			t.Fatal(row.work, err)
		}
		b.wantWork(t, "it has begun", nil, row.work)
		if taken, err := row.takes(); err != nil || !taken {
			t.Fatal(row.work, taken, err)
		}
		b.wantWork(t, "a worker has it", nil)
		b.Exec(t, `UPDATE `+row.table+` SET lease_until = clock_timestamp() - interval '1 second'`)
		b.wantWork(t, "its lease has run out", nil, row.work)
		b.Exec(t, `UPDATE `+row.table+` SET lease_until = clock_timestamp() + interval '1 hour'`)
	}
	b.Exec(t, `UPDATE campaigns SET lease_until = NULL, status = 'canceled', ended_at = clock_timestamp()`)
	b.Exec(t, `UPDATE bulk_changes SET lease_until = NULL, status = 'done', ended_at = clock_timestamp()`)
	b.Exec(t, `UPDATE policy_operations SET lease_until = NULL, status = 'finished', ended_at = clock_timestamp()`)
	b.wantWork(t, "all have ended", nil)
}

// TestAgenda_Schedules checks that a schedule is work from a second before an occurrence, and while an occurrence that
// was begun has no outcome.
func TestAgenda_Schedules(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	id := uuid.New()
	b.Exec(t, `INSERT INTO schedules (id, tenant_id, name, cron, time_zone, push, catch_up, paused, began_at, done_at, next_at, created_at, updated_at)
		SELECT $1, $2, 'daily', '@daily', 'UTC', '{}', 'skip', false, now, now, now + interval '1 hour', now, now FROM clock_timestamp() AS now`, id, b.TenantID)
	b.wantWork(t, "nothing is due", nil)
	b.Exec(t, `UPDATE schedules SET next_at = clock_timestamp() + interval '900 milliseconds'`)
	b.wantWork(t, "an occurrence is due soon", nil, store.RunSchedules)
	b.Exec(t, `UPDATE schedules SET next_at = NULL`)
	b.Exec(t, `INSERT INTO schedule_runs (schedule_id, at, tenant_id) VALUES ($1, clock_timestamp(), $2)`, id, b.TenantID)
	b.wantWork(t, "an occurrence is begun", nil, store.RunSchedules)
	b.Exec(t, `UPDATE schedule_runs SET outcome = 'skipped'`)
	b.wantWork(t, "it is done", nil)
}
