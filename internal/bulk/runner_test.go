package bulk_test

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/bulk"
	"github.com/sendquota/sendquota/internal/bulkchange"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/schedule"
	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/internal/testenv"
)

var perMinute = quota.Rule{Name: "per-minute", Limit: 1, Window: time.Minute}

// TestRunner_Cancel: matching pushes are canceled, and no others.
func TestRunner_Cancel(t *testing.T) {
	t.Parallel()
	b := setup(t)
	first, second := b.submit(t, "aiko", 0), b.submit(t, "aiko", time.Hour)
	other := b.submit(t, "bo", 0)
	made := b.create(t, bulkchange.Change{Action: bulkchange.Cancel, Filter: push.Filter{Recipient: "aiko", Until: b.at.Add(time.Hour)}})
	later := b.submit(t, "aiko", time.Minute)
	p := b.run(t, made.ID)
	if p.Status != bulkchange.Done || p.Found != 1 || p.Changed != 1 || p.Left() != 0 {
		t.Errorf("%+v", p)
	}
	for id, want := range map[uuid.UUID]push.Status{first: push.Canceled, second: push.Scheduled, other: push.Scheduled, later: push.Scheduled} {
		if got := b.push(t, id).Status; got != want {
			t.Errorf("%s is %s, want %s", id, got, want)
		}
	}
}

// TestRunner_Frozen: a bulk cancel applies to the pushes that match when it is accepted. It does not change a push that
// ends before it is listed, or one that is booked, or moved into the filter, later. This holds in the same week and in
// another one.
func TestRunner_Frozen(t *testing.T) {
	t.Parallel()
	for _, from := range []time.Duration{2 * time.Hour, 21 * 24 * time.Hour} {
		b := setup(t)
		fits, ended, outside := b.submit(t, "aiko", 0), b.submit(t, "bo", 0), b.submit(t, "chi", from)
		inside := b.submit(t, "dan", 0) // moved within the filter before
		if _, err := b.pushes.Reschedule(t.Context(), b.tenant, inside, schedule.When{SendAt: b.at.Add(time.Minute)}, schedule.Options{}); err != nil {
			t.Fatal(err)
		}
		made := b.create(t, bulkchange.Change{Action: bulkchange.Cancel, Filter: push.Filter{Until: b.at.Add(time.Hour)}})
		if _, err := b.pushes.Reschedule(t.Context(), b.tenant, outside, schedule.When{SendAt: b.at}, schedule.Options{}); err != nil {
			t.Fatal(err)
		}
		if _, err := b.pushes.Cancel(t.Context(), b.tenant, ended); err != nil {
			t.Fatal(err)
		}
		later := b.submit(t, "eve", 0)
		if p := b.run(t, made.ID); p.Status != bulkchange.Done || p.Found != 2 || p.Changed != 2 || len(p.Refused) > 0 {
			t.Errorf("from %s: %+v", from, p)
		}
		for id, want := range map[uuid.UUID]push.Status{fits: push.Canceled, inside: push.Canceled, outside: push.Scheduled, later: push.Scheduled} {
			if got := b.push(t, id).Status; got != want {
				t.Errorf("from %s: %s is %s, want %s", from, id, got, want)
			}
		}
	}
}

// TestRunner_MoveOrder: a recipient's pushes that are as close as the rule allows can all move by the same time, either
// way.
func TestRunner_MoveOrder(t *testing.T) {
	t.Parallel()
	for _, by := range []time.Duration{time.Minute, -time.Minute} {
		b := setup(t, perMinute)
		b.row(t, 100) // more than a step
		p := b.run(t, b.create(t, bulkchange.Change{Action: bulkchange.Move, Shift: by}).ID)
		if p.Status != bulkchange.Done || p.Found != 100 || p.Changed != 100 {
			t.Errorf("by %s: %+v", by, p)
		}
	}
}

// TestRunner_MoveRefused: a push without a place at its new time keeps the old one, and the list has the reason.
func TestRunner_MoveRefused(t *testing.T) {
	t.Parallel()
	b := setup(t, perMinute)
	first, second := b.submit(t, "aiko", 0), b.submit(t, "aiko", 10*time.Minute)
	b.submit(t, "bo", 0)
	p := b.run(t, b.create(t, bulkchange.Change{Action: bulkchange.Move, SendAt: b.at.Add(time.Hour)}).ID)
	if p.Found != 3 || p.Changed != 2 || !reflect.DeepEqual(p.Refused, map[string]int64{"quota-exceeded": 1}) {
		t.Errorf("%+v", p)
	}
	if at := b.push(t, first).SendAt; !at.Equal(b.at.Add(time.Hour)) {
		t.Errorf("the first is at %s", at)
	}
	if at := b.push(t, second).SendAt; !at.Equal(b.at.Add(10 * time.Minute)) {
		t.Errorf("the second is at %s", at)
	}
	page, err := b.BulkRefused(t.Context(), b.tenant, p.ID, push.Position{}, 10)
	if err != nil || len(page.Pushes) != 1 || page.Pushes[0].ID != second || !reflect.DeepEqual(page.Pushes[0].Rules, []string{"per-minute"}) {
		t.Errorf("%+v, %v", page, err)
	}
}

// forgetful loses the records of the steps that were done, as a crash does.
type forgetful struct {
	*store.Store
	after int // steps
}

var errCrash = errors.New("crash")

func (f *forgetful) RecordBulk(ctx context.Context, id uuid.UUID, decided []bulkchange.Push) error {
	if f.after--; f.after < 0 {
		return errCrash
	}
	return f.Store.RecordBulk(ctx, id, decided)
}

// TestRunner_Crash: a step that was done but not recorded is repeated by another worker. Nothing moves twice, and
// everything is counted.
func TestRunner_Crash(t *testing.T) {
	t.Parallel()
	for _, action := range []bulkchange.Action{bulkchange.Move, bulkchange.Cancel} {
		b := setup(t, perMinute)
		ids := b.row(t, 100)
		p := bulkchange.Change{Action: action}
		if action == bulkchange.Move {
			p.Shift = 30 * time.Minute
		}
		p = b.create(t, p)
		dying := bulk.NewRunner(&forgetful{b.store, 1}, b.pushes, quiet)
		for {
			if _, err := dying.Pass(t.Context()); errors.Is(err, errCrash) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
		testenv.Exec(t, b.url, `UPDATE bulk_changes SET lease_until = NULL`)
		p = b.run(t, p.ID)
		if p.Status != bulkchange.Done || p.Found != 100 || p.Changed != 100 {
			t.Errorf("%s: %+v", action, p)
		}
		for i, id := range ids {
			got, want := b.push(t, id), b.at.Add(time.Duration(i)*time.Minute+p.Shift)
			if !got.SendAt.Equal(want) || (got.Status == push.Canceled) != (action == bulkchange.Cancel) {
				t.Errorf("%s: push %d is %s at %s, want %s", action, i, got.Status, got.SendAt, want)
			}
		}
	}
}

// TestRunner_CrashSent: a push that was moved before a crash, and sent since, counts as moved.
func TestRunner_CrashSent(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.submit(t, "aiko", 0)
	p := b.create(t, bulkchange.Change{Action: bulkchange.Move, Shift: -time.Hour})
	dying := bulk.NewRunner(&forgetful{b.store, 0}, b.pushes, quiet)
	b.passes(t, dying, 1) // lists
	if _, err := dying.Pass(t.Context()); !errors.Is(err, errCrash) {
		t.Fatal(err)
	}
	testenv.Exec(t, b.url, `DELETE FROM live`)
	testenv.Exec(t, b.url, `UPDATE pushes SET status = 'sent'`)
	testenv.Exec(t, b.url, `UPDATE bulk_changes SET lease_until = NULL`)
	if p = b.run(t, p.ID); p.Status != bulkchange.Done || p.Changed != 1 {
		t.Errorf("%+v", p)
	}
}

// TestRunner_MovedMeanwhile: a push that another request moves keeps that time when a bulk change would move it, and is
// canceled by one that cancels, before and after it was listed.
func TestRunner_MovedMeanwhile(t *testing.T) {
	t.Parallel()
	for i := range 4 {
		b, p, listed := setup(t), bulkchange.Change{Action: bulkchange.Cancel}, i%2 == 0
		if i < 2 {
			p = bulkchange.Change{Action: bulkchange.Move, Shift: time.Hour}
		}
		id := b.submit(t, "aiko", 0)
		p = b.create(t, p)
		if listed {
			b.passes(t, b.runner, 1)
		}
		to := b.at.Add(7 * time.Minute)
		if _, err := b.pushes.Reschedule(t.Context(), b.tenant, id, schedule.When{SendAt: to}, schedule.Options{}); err != nil {
			t.Fatal(err)
		}
		p = b.run(t, p.ID)
		want, refused := push.Canceled, int64(0)
		if p.Action == bulkchange.Move {
			want, refused = push.Scheduled, 1
		}
		if got := b.push(t, id); !got.SendAt.Equal(to) || got.Status != want || p.Refused[bulkchange.MovedMeanwhile] != refused || p.Found != 1 || p.Left() != 0 {
			t.Errorf("listed %v: %s at %s; %+v", listed, got.Status, got.SendAt, p)
		}
	}
}

// TestRunner_Stopped: a stopped bulk change changes nothing more, and reports the number of pushes left.
func TestRunner_Stopped(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.holds(t, 200)
	p := b.create(t, bulkchange.Change{Action: bulkchange.Cancel})
	b.passes(t, b.runner, 2) // lists, and a step
	p, err := b.CancelBulkChange(t.Context(), b.tenant, p.ID)
	if err != nil || p.Status != bulkchange.Canceling {
		t.Fatal(p, err)
	}
	p = b.run(t, p.ID)
	if p.Status != bulkchange.Canceled || p.Found != 200 || p.Changed != 64 || p.Left() != 136 {
		t.Errorf("%+v", p)
	}
	if again, err := b.CancelBulkChange(t.Context(), b.tenant, p.ID); err != nil || again.Status != bulkchange.Canceled {
		t.Errorf("%+v, %v", again, err)
	}
}

// TestRunner_Turns: a tenant's small change is processed while another tenant's large change runs.
func TestRunner_Turns(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.holds(t, 600)
	large := b.create(t, bulkchange.Change{Action: bulkchange.Cancel})
	var err error
	if b.tenant, _, err = b.store.CreateTenant(t.Context(), "other"); err != nil {
		t.Fatal(err)
	}
	b.submit(t, "aiko", 0)
	small := b.create(t, bulkchange.Change{Action: bulkchange.Cancel})
	b.passes(t, b.runner, 8)
	if p := b.read(t, small.ID); p.Status != bulkchange.Done {
		t.Errorf("after eight steps: %+v", p)
	}
	if got, err := b.BulkChange(t.Context(), large.Tenant, large.ID); err != nil || got.Status != bulkchange.Running {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestRunner_Large: a bulk change ends even if more pushes match than are listed at once.
func TestRunner_Large(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.holds(t, 1_050)
	p := b.run(t, b.create(t, bulkchange.Change{Action: bulkchange.Move, Shift: time.Hour, Filter: push.Filter{Channel: "sms"}}).ID)
	if p.Status != bulkchange.Done || p.Found != 1_050 || p.Changed != 1_050 {
		t.Errorf("%+v", p)
	}
}

// TestErase_BulkChanges: an erasure removes the recipient from filters, and its pushes from the lists.
func TestErase_BulkChanges(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.submit(t, "aiko", 0)
	b.submit(t, "bo", 0)
	named := b.create(t, bulkchange.Change{Action: bulkchange.Move, Shift: time.Hour, Filter: push.Filter{Recipient: "aiko"}})
	all := b.create(t, bulkchange.Change{Action: bulkchange.Move, Shift: time.Hour})
	b.passes(t, b.runner, 2) // both list
	if _, err := b.store.Erase(t.Context(), quota.Recipient{Tenant: b.tenant, ID: "aiko"}); err != nil {
		t.Fatal(err)
	}
	if p := b.read(t, named.ID); p.Filter.Recipient != "" || !p.Erased || p.Status != bulkchange.Canceled || p.Changed != 0 {
		t.Errorf("%+v", p)
	}
	if p := b.run(t, all.ID); p.Status != bulkchange.Done || p.Changed != 1 || p.Left() != 1 {
		t.Errorf("%+v", p)
	}
	if n := testenv.Query[int](t, b.url, `SELECT count(*) FROM bulk_change_pushes`); n != 1 {
		t.Errorf("%d rows are left", n)
	}
}

// TestSweeper: bulk changes that ended long ago are removed, with their rows.
func TestSweeper(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.submit(t, "aiko", 0)
	old := b.create(t, bulkchange.Change{Action: bulkchange.Cancel})
	b.run(t, old.ID)
	testenv.Exec(t, b.url, `UPDATE bulk_changes SET ended_at = ended_at - interval '31 days'`)
	fresh := b.create(t, bulkchange.Change{Action: bulkchange.Cancel})
	if n, err := b.store.SweepBulk(t.Context(), 30*24*time.Hour, 100); n != 2 || err != nil {
		t.Errorf("removed %d rows: %v", n, err)
	}
	if _, err := b.BulkChange(t.Context(), b.tenant, old.ID); !errors.Is(err, push.ErrNotFound) {
		t.Error(err)
	}
	b.read(t, fresh.ID)
}
