package recurring_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/store/schedules"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/invalid"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/recurrence"
	"github.com/sendquota/sendquota/internal/recurring"
	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/internal/testenv"
)

func (b *bundle) change(p recurrence.Schedule, c recurring.Change) recurrence.Schedule {
	b.t.Helper()
	changed, err := b.Change(b.t.Context(), p.Tenant, p.ID, c, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	return changed
}

// TestChange_Paused: a pause skips the occurrences during it, but not those due before or after it, whether or not a
// worker has run meanwhile.
func TestChange_Paused(t *testing.T) {
	t.Parallel()
	b := setup(t)
	last := recurrence.Last
	for _, looks := range []bool{true, false} {
		p := b.create(recurring.Change{CatchUp: &last})
		b.age(p.ID, 61*time.Second)
		if p = b.change(p, recurring.Change{Paused: new(true)}); !p.Paused {
			t.Errorf("%+v", p)
		}
		// Two more minutes pass.
		testenv.Exec(t, b.url, `UPDATE schedules SET began_at = began_at - interval '2 minutes', done_at = done_at - interval '2 minutes', next_at = next_at - interval '2 minutes' WHERE id = $1`, [16]byte(p.ID))
		testenv.Exec(t, b.url, `UPDATE schedule_runs SET at = at - interval '2 minutes' WHERE schedule_id = $1`, [16]byte(p.ID))
		if looks {
			b.pass()
			b.want(p, "submitted", "skipped paused", "skipped paused")
		}
		if p = b.change(p, recurring.Change{Paused: new(false)}); p.Paused {
			t.Errorf("%+v", p)
		}
		b.pass()
		b.want(p, "submitted", "skipped paused", "skipped paused")
		testenv.Exec(t, b.url, `UPDATE schedules SET began_at = began_at - interval '59 seconds', done_at = done_at - interval '59 seconds', next_at = next_at - interval '59 seconds' WHERE id = $1`, [16]byte(p.ID))
		b.pass()
		b.want(p, "submitted", "skipped paused", "skipped paused", "submitted")
	}
}

// TestChange_Times: occurrences that were due before a new expression is in force happen, and later ones of the old
// expression do not.
func TestChange_Times(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := b.create(recurring.Change{Until: new(time.Now().Add(365 * 24 * time.Hour))})
	b.age(p.ID, 700*time.Minute+time.Second)
	p = b.change(p, recurring.Change{Cron: new("30 2 29 2 *"), TimeZone: new("Asia/Tokyo"), Until: new(time.Time{})})
	at := p.NextAt.In(time.FixedZone("", 9*3600))
	if at.Format("02.01. 15:04") != "29.02. 02:30" || !p.Until.IsZero() {
		t.Errorf("%+v", p)
	}
	b.pass()
	if all := b.runs(p); len(all) != 700 || all[699].Outcome != recurrence.Submitted {
		t.Errorf("%d runs", len(all))
	}
	// It ends, and begins again.
	testenv.Exec(t, b.url, `UPDATE schedules SET cron = '@every 1m', until = clock_timestamp() - interval '1 minute', next_at = NULL WHERE id = $1`, [16]byte(p.ID))
	if p = b.change(p, recurring.Change{Name: new("x")}); !p.NextAt.IsZero() || p.Name != "x" {
		t.Errorf("%+v", p)
	}
	p = b.change(p, recurring.Change{Until: new(time.Now().Add(time.Hour))})
	if in := time.Until(p.NextAt); in <= 0 || in > time.Minute {
		t.Errorf("%+v", p)
	}
	b.pass()
	if n := len(b.runs(p)); n != 700 {
		t.Errorf("%d runs", n)
	}
}

// TestChange_UnknownZone: a schedule whose zone is no longer known can be paused, and mended.
func TestChange_UnknownZone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := b.create(recurring.Change{})
	testenv.Exec(t, b.url, `UPDATE schedules SET time_zone = 'Mars/Olympus' WHERE id = $1`, [16]byte(p.ID))
	b.age(p.ID, time.Hour)
	b.pass()
	if p = b.change(p, recurring.Change{Paused: new(true)}); !p.Paused || p.NextAt.IsZero() {
		t.Errorf("%+v", p)
	}
	if next, err := b.Next(t.Context(), p.Tenant, p.ID, 3); err != nil || len(next) != 0 {
		t.Errorf("%v, %v", next, err)
	}
	_, err := b.Change(t.Context(), p.Tenant, p.ID, recurring.Change{Cron: new("@hourly")}, nil)
	if wrong, ok := errors.AsType[invalid.FieldErrors](err); !ok || len(wrong) != 1 || wrong[0].Field != "time_zone" {
		t.Errorf("an expression without a zone: %v", err)
	}
	p = b.change(p, recurring.Change{TimeZone: new("Asia/Tokyo"), Paused: new(false)})
	if p.TimeZone != "Asia/Tokyo" || p.Paused || !p.NextAt.After(time.Now()) {
		t.Errorf("%+v", p)
	}
	b.age(p.ID, time.Minute)
	b.pass()
	b.want(p, "submitted")
}

// TestUntil_Exclusive: nothing occurs at the end, and a schedule that has ended stays.
func TestUntil_Exclusive(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := b.create(recurring.Change{})
	b.age(p.ID, 2*time.Minute+time.Second)
	testenv.Exec(t, b.url, `UPDATE schedules SET until = began_at + interval '2 minutes' WHERE id = $1`, [16]byte(p.ID))
	b.pass()
	b.want(p, "skipped missed")
	if p, err := b.Schedule(t.Context(), b.tenant, p.ID); err != nil || !p.NextAt.IsZero() {
		t.Errorf("%+v, %v", p, err)
	}
	if next, err := b.Next(t.Context(), b.tenant, p.ID, 5); err != nil || len(next) != 0 {
		t.Errorf("%v, %v", next, err)
	}
}

// TestDelete_Waits: a schedule is not deleted while an occurrence is being submitted. Afterwards nothing is submitted.
func TestDelete_Waits(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p, other := b.create(recurring.Change{}), b.create(recurring.Change{})
	b.age(p.ID, 61*time.Second)
	deleted := make(chan error, 1)
	r := recurring.NewRunner(&slowStore{b.store, func() {
		go func() { deleted <- b.DeleteSchedule(context.WithoutCancel(t.Context()), b.tenant, p.ID) }()
		testenv.Until(t, 10*time.Millisecond, "the deletion waits for the occurrence", func() bool {
			return testenv.Query[int](t, b.url, `SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%UPDATE schedules SET deleted_at%' AND datname = current_database()`) == 1
		})
		if len(b.sent(p)) != 0 || len(deleted) != 0 {
			t.Error("it did not wait")
		}
	}}, b.pushes, b.campaigns, quiet, 0)
	passAll(t, r)
	if err := <-deleted; err != nil {
		t.Fatal(err)
	}
	if n := len(b.sent(p)); n != 1 {
		t.Errorf("%d pushes", n)
	}
	if _, err := b.Schedule(t.Context(), b.tenant, p.ID); !errors.Is(err, push.ErrNotFound) {
		t.Error(err)
	}
	// An occurrence that was begun before is not submitted afterwards.
	b.age(other.ID, 61*time.Second)
	passAll(t, recurring.NewRunner(&beginner{b.store}, b.pushes, b.campaigns, quiet, 0))
	if err := b.DeleteSchedule(t.Context(), b.tenant, other.ID); err != nil {
		t.Fatal(err)
	}
	b.pass()
	if n := len(b.sent(other)); n != 0 {
		t.Errorf("%d pushes after the deletion", n)
	}
}

// slowStore calls a function before occurrences are submitted.
type slowStore struct {
	*store.Store
	before func()
}

func (s *slowStore) LockOccurrences(ctx context.Context, turn *schedules.Turn, limit int) (*schedules.Begun, error) {
	b, err := s.Store.LockOccurrences(ctx, turn, limit)
	if err == nil && len(b.Occurrences) > 0 {
		s.before()
	}
	return b, err
}

// TestCreate_Key: a repeated request finds its schedule, even if it would be invalid by now.
func TestCreate_Key(t *testing.T) {
	t.Parallel()
	b := setup(t)
	change := recurring.Change{Cron: new("@daily"), Until: new(time.Now().Add(time.Hour)), Pattern: &recurrence.Pattern{Recipient: "anna", Message: json.RawMessage(`{}`)}}
	key := recurring.Key{Text: "k", Hash: []byte("hash")}
	first, found, err := b.Create(t.Context(), b.tenant, change, key)
	if err != nil || found {
		t.Fatal(found, err)
	}
	change.Until = new(time.Now().Add(-time.Hour))
	if again, found, err := b.Create(t.Context(), b.tenant, change, key); err != nil || !found || again.ID != first.ID {
		t.Error(again, found, err)
	}
	if _, _, err := b.Create(t.Context(), b.tenant, change, recurring.Key{Text: "k", Hash: []byte("other")}); !errors.Is(err, push.ErrKeyReused) {
		t.Error(err)
	}
	var wrong invalid.FieldErrors
	if _, _, err := b.Create(t.Context(), b.newTenant(), change, key); !errors.As(err, &wrong) || wrong[0].Field != "until" {
		t.Error(err)
	}
	if err := b.DeleteSchedule(t.Context(), b.tenant, first.ID); err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.Create(t.Context(), b.tenant, change, key); !errors.Is(err, push.ErrNotFound) {
		t.Error(err)
	}
}

// TestCreate_Zone: without a zone, a schedule has the default zone of the tenant's policy.
func TestCreate_Zone(t *testing.T) {
	t.Parallel()
	b := setup(t)
	if p := b.create(recurring.Change{}); p.TimeZone != "UTC" {
		t.Errorf("%+v", p)
	}
	testenv.Exec(t, b.url, `INSERT INTO policies (tenant_id, version, document) VALUES ($1, 1, '{"rules": [], "default_zone": "Asia/Tokyo"}')`, [16]byte(b.tenant))
	testenv.Exec(t, b.url, `UPDATE tenants SET policy_version = 1 WHERE id = $1`, [16]byte(b.tenant))
	if p := b.create(recurring.Change{Cron: new("0 9 * * *")}); p.TimeZone != "Asia/Tokyo" || p.NextAt.Hour() != 0 {
		t.Errorf("%+v", p)
	}
}

// TestCreate_Bounded: a tenant cannot exceed its maximum number of schedules.
func TestCreate_Bounded(t *testing.T) {
	t.Parallel()
	b := setup(t)
	few := recurring.New(b.store, b.pushes, time.Now, recurring.Config{MaxPerTenant: 2})
	change := recurring.Change{Cron: new("@daily"), Pattern: &recurrence.Pattern{Recipient: "anna", Message: json.RawMessage(`{}`)}}
	for n := range 3 {
		_, _, err := few.Create(t.Context(), b.tenant, change, recurring.Key{})
		if full := errors.Is(err, recurrence.ErrTooMany); full != (n == 2) {
			t.Errorf("%d: %v", n, err)
		}
	}
}

// TestCheck checks that all faults are reported.
func TestCheck(t *testing.T) {
	t.Parallel()
	s := recurring.New(nil, nil, time.Now, recurring.Config{})
	old := recurrence.Schedule{Cron: "0 0 30 2 *", TimeZone: "Mars/Olympus"}
	for _, row := range []struct {
		name   string
		change recurring.Change
		of     recurrence.Schedule
		want   string
	}{
		{"nothing", recurring.Change{}, old, ""},
		{"all", recurring.Change{Cron: new("0 9 * *"), TimeZone: new("Europe/Belin"), Until: new(time.Now().Add(-time.Second))}, recurrence.Schedule{}, "time_zone Europe/Berlin; cron five fields; until in the future"},
		{"never", recurring.Change{Cron: new("0 0 30 2 *")}, recurrence.Schedule{}, "cron never happens"},
		{"every second", recurring.Change{Cron: new("@every 1s")}, recurrence.Schedule{}, "cron at least a minute"},
		{"a zone in it", recurring.Change{Cron: new("CRON_TZ=UTC 0 9 * * *")}, recurrence.Schedule{}, "cron time_zone"},
		{"no zone", recurring.Change{Cron: new("@daily"), TimeZone: new("")}, recurrence.Schedule{}, "time_zone no time zone"},
		{"for ever", recurring.Change{Until: new(time.Time{})}, recurrence.Schedule{}, ""},
	} {
		bad, err := s.Check(t.Context(), row.change, row.of)
		if err != nil {
			t.Fatal(err)
		}
		wants := strings.Split(row.want, "; ")
		if row.want == "" {
			wants = nil
		}
		if len(bad) != len(wants) {
			t.Errorf("%s: %v", row.name, bad)
			continue
		}
		for i, want := range wants {
			field, text, _ := strings.Cut(want, " ")
			if bad[i].Field != field || !strings.Contains(bad[i].Message, text) {
				t.Errorf("%s: %v, want %s", row.name, bad[i], want)
			}
		}
	}
}

// TestSchedules_Pages: a list has each schedule once, and no schedules of other tenants.
func TestSchedules_Pages(t *testing.T) {
	t.Parallel()
	b := setup(t)
	want := map[uuid.UUID]bool{}
	for range 7 {
		want[b.create(recurring.Change{}).ID] = true
	}
	b.createFor(b.newTenant(), recurring.Change{})
	for after, pages := uuid.Nil, 0; ; pages++ {
		page, err := b.Schedules(t.Context(), b.tenant, after, 3)
		if err != nil || len(page.Schedules) > 3 {
			t.Fatal(page, err)
		}
		for _, p := range page.Schedules {
			if !want[p.ID] {
				t.Errorf("%+v", p)
			}
			delete(want, p.ID)
		}
		if after = page.Next; after == uuid.Nil {
			if len(want) != 0 || pages != 2 {
				t.Errorf("%d are missing after %d pages", len(want), pages)
			}
			return
		}
	}
}
