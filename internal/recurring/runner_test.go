package recurring_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/store/schedules"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/recurrence"
	"github.com/sendquota/sendquota/internal/recurring"
	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/internal/testenv"
)

// TestRunner_Due: a due occurrence is submitted for its time, once, and not before.
func TestRunner_Due(t *testing.T) {
	t.Parallel()
	b := setup(t)
	p := b.create(recurring.Change{Pattern: &recurrence.Pattern{
		Recipient: "anna", Channel: "sms", Category: "digest", To: "+4512345678", Message: json.RawMessage(`{"body":"<b>&"}`), Metadata: json.RawMessage(`{"a":1.50}`), ExpiresAfter: recurrence.Span(time.Hour),
	}})
	b.pass()
	b.want(p)
	began := b.age(p.ID, 61*time.Second)
	b.pass()
	b.pass()
	b.want(p, "submitted")
	all := b.sent(p)
	if len(all) != 1 || all[0].ID != b.runs(p)[0].Push || !b.runs(p)[0].At.Equal(began.Add(time.Minute)) {
		t.Fatalf("%+v, %+v", all, b.runs(p))
	}
	got := all[0]
	if !got.SendAt.Equal(began.Add(time.Minute)) || !got.ExpiresAt.Equal(got.SendAt.Add(time.Hour)) || got.Channel != "sms" || got.Category != "digest" ||
		got.To != "+4512345678" || string(got.Message) != `{"body":"<b>&"}` || string(got.Metadata) != `{"a":1.50}` || got.RequestID != p.ID.String() {
		t.Errorf("%+v", got)
	}
	if now, err := b.Schedule(t.Context(), b.tenant, p.ID); err != nil || !now.NextAt.Equal(began.Add(2*time.Minute)) {
		t.Errorf("%+v, %v", now, err)
	}
}

// TestRunner_WrongClock: Postgres' clock determines when an occurrence is due, and whether it is late.
func TestRunner_WrongClock(t *testing.T) {
	t.Parallel()
	for _, ahead := range []time.Duration{5 * time.Minute, -5 * time.Minute} {
		b := setup(t, quota.Rule{Name: "per-day", Limit: 1, Window: 24 * time.Hour})
		pushes := b.servicesAt(func() time.Time { return time.Now().Add(ahead) })
		last, deferred := recurrence.Last, recurrence.Pattern{Recipient: "anna", OnConflict: "defer", Message: json.RawMessage(`{}`)}
		p := b.create(recurring.Change{CatchUp: &last, Pattern: &deferred})
		began := b.age(p.ID, 2*time.Minute+time.Second)
		passAll(t, recurring.NewRunner(b.store, pushes, b.campaigns, quiet, 0))
		b.want(p, "skipped missed", "submitted")
		all := b.sent(p)
		if len(all) != 1 || all[0].SendAt.Before(began.Add(2*time.Minute)) || all[0].SendAt.Sub(began) > 3*time.Minute {
			t.Errorf("%s ahead: %+v", ahead, all)
		}
	}
}

// TestRunner_Missed: each missed occurrence has a run, and the latest is submitted if the schedule asks for it.
func TestRunner_Missed(t *testing.T) {
	t.Parallel()
	b := setup(t)
	skip, last := b.create(recurring.Change{}), b.create(recurring.Change{CatchUp: new(recurrence.Last)})
	many := b.create(recurring.Change{})
	for _, p := range []recurrence.Schedule{skip, last} {
		b.age(p.ID, 4*time.Minute+time.Second)
	}
	b.age(many.ID, 1200*time.Minute+time.Second) // more than are settled at once
	old := b.create(recurring.Change{})
	b.age(old.ID, 100*24*time.Hour+time.Second) // longer ago than runs are kept
	testenv.Exec(t, b.url, `UPDATE schedules SET cron = '@every 24h' WHERE id = $1`, [16]byte(old.ID))
	late := b.create(recurring.Change{Cron: new("@every 3m"), CatchUp: new(recurrence.Last)})
	b.age(late.ID, 8*time.Minute) // the second was two minutes ago
	b.pass()
	b.want(skip, "skipped missed", "skipped missed", "skipped missed", "submitted")
	b.want(last, "skipped missed", "skipped missed", "skipped missed", "submitted") // the latest missed one is not submitted beside the due one
	b.want(late, "skipped missed", "submitted")
	if all := b.sent(last); len(all) != 1 {
		t.Errorf("%d were sent", len(all))
	}
	if all := b.sent(late); len(all) != 1 || !all[0].SendAt.After(b.runs(late)[1].At.Add(time.Minute)) {
		t.Errorf("what is late is sent now: %+v", all)
	}
	if all := b.runs(many); len(all) != 1200 || len(b.sent(many)) != 1 {
		t.Errorf("%d runs", len(all))
	}
	if n := len(b.runs(old)); n != 90 {
		t.Errorf("%d runs of 90 days", n)
	}
}

// TestRunner_Refused: a refused occurrence has its reason on record.
func TestRunner_Refused(t *testing.T) {
	t.Parallel()
	b := setup(t, quota.Rule{Name: "per-day", Limit: 1, Window: 24 * time.Hour}, quota.Rule{Name: "per-week", Limit: 1, Window: 7 * 24 * time.Hour})
	full, unwanted, unknown, deferred := b.create(recurring.Change{}), b.create(recurring.Change{}), b.create(recurring.Change{}), b.create(recurring.Change{Pattern: &recurrence.Pattern{
		Recipient: "bert", OnConflict: "defer", Message: json.RawMessage(`{}`),
	}})
	for _, p := range []recurrence.Schedule{full, deferred} {
		b.age(p.ID, 61*time.Second)
		b.pass()
		b.age(p.ID, 61*time.Second)
		testenv.Exec(t, b.url, `UPDATE schedules SET began_at = began_at + interval '1 second', done_at = done_at + interval '1 second', next_at = next_at + interval '1 second' WHERE id = $1`, [16]byte(p.ID))
	}
	testenv.Exec(t, b.url, `
		INSERT INTO recipients (shard, tenant_id, recipient_key, recipient, opt_out_all) VALUES ($1, $2, $3, $4, true)`,
		int16(push.Shard(push.RecipientKey(b.tenant, unwanted.Pattern.Recipient))), [16]byte(b.tenant), push.RecipientKey(b.tenant, unwanted.Pattern.Recipient), unwanted.Pattern.Recipient)
	testenv.Exec(t, b.url, `UPDATE tenants SET described = true WHERE id = $1`, [16]byte(b.tenant))
	testenv.Exec(t, b.url, `UPDATE schedules SET push = '{"recipient":"carl","channel":"fax","message":{}}' WHERE id = $1`, [16]byte(unknown.ID))
	b.age(unwanted.ID, 61*time.Second)
	b.age(unknown.ID, 61*time.Second)
	testenv.Until(t, 100*time.Millisecond, "all have runs", func() bool {
		b.pass()
		return len(b.runs(full)) == 2 && len(b.runs(deferred)) == 2
	})
	b.want(full, "submitted", "refused quota-exceeded")
	b.want(unwanted, "refused opted-out")
	b.want(unknown, "refused invalid-request")
	b.want(deferred, "submitted", "submitted")
	if r := b.runs(full)[1]; fmt.Sprint(r.Rules) != "[per-day per-week]" || r.Push != uuid.Nil {
		t.Errorf("%+v", r)
	}
	if r := b.runs(unknown)[0]; r.Detail == "" {
		t.Errorf("%+v", r)
	}
	if all := b.sent(deferred); len(all) != 2 || all[1].SendAt.Sub(all[0].SendAt) < 7*24*time.Hour {
		t.Errorf("%+v", all)
	}
}

// TestRunner_Again: a worker that dies after a submit leaves the occurrence to others, which get the same push,
// whatever the schedule is by then.
func TestRunner_Again(t *testing.T) {
	t.Parallel()
	b := setup(t, quota.Rule{Name: "per-day", Limit: 1, Window: 24 * time.Hour})
	p := b.create(recurring.Change{})
	b.age(p.ID, 61*time.Second)
	dying, die := context.WithCancel(t.Context())
	dead := recurring.NewRunner(&dyingStore{b.store, die}, b.pushes, b.campaigns, quiet, 0)
	if _, err := dead.Pass(dying); err == nil {
		t.Fatal("it has not died")
	}
	b.want(p)
	first := b.sent(p)
	if len(first) != 1 {
		t.Fatalf("%+v", first)
	}
	if _, err := b.Change(t.Context(), b.tenant, p.ID, recurring.Change{Pattern: &recurrence.Pattern{Recipient: p.Pattern.Recipient, Message: json.RawMessage(`{"title":"other"}`)}}, nil); err != nil {
		t.Fatal(err)
	}
	b.pass()
	b.want(p, "submitted")
	if all := b.sent(p); len(all) != 1 || all[0].ID != b.runs(p)[0].Push {
		t.Errorf("%+v, %+v", all, b.runs(p))
	}
}

// dyingStore is the store of a worker that dies before the outcomes of occurrences are recorded.
type dyingStore struct {
	*store.Store
	die func()
}

func (s *dyingStore) RecordOccurrences(ctx context.Context, b *schedules.Begun, runs []recurrence.Run) (bool, error) {
	s.die()
	return s.Store.RecordOccurrences(ctx, b, runs)
}

// TestRunner_LongBegun: an occurrence that was begun long ago is missed, unless it was submitted.
func TestRunner_LongBegun(t *testing.T) {
	t.Parallel()
	b := setup(t)
	not, done, last := b.create(recurring.Change{}), b.create(recurring.Change{}), b.create(recurring.Change{CatchUp: new(recurrence.Last)})
	begin := recurring.NewRunner(&beginner{b.store}, b.pushes, b.campaigns, quiet, 0)
	for _, p := range []recurrence.Schedule{not, done, last} {
		b.age(p.ID, 61*time.Second)
	}
	passAll(t, begin)
	testenv.Exec(t, b.url, `UPDATE schedule_runs SET outcome = 'skipped' WHERE schedule_id <> $1`, [16]byte(done.ID))
	b.pass()
	testenv.Exec(t, b.url, `UPDATE schedule_runs SET outcome = NULL, push_id = NULL, begun_at = begun_at - interval '11 minutes'`)
	b.pass()
	b.want(not, "skipped missed")
	b.want(done, "submitted")
	b.want(last, "submitted")
	if all := b.sent(done); len(all) != 1 || all[0].ID != b.runs(done)[0].Push {
		t.Errorf("%+v", all)
	}
}

// beginner begins occurrences, and submits none.
type beginner struct{ *store.Store }

func (b beginner) LockOccurrences(ctx context.Context, _ *schedules.Turn, _ int) (*schedules.Begun, error) {
	return b.Store.LockOccurrences(ctx, &schedules.Turn{}, 0)
}

// TestRunner_Workers: three concurrent workers submit each occurrence once.
func TestRunner_Workers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	all := make([]recurrence.Schedule, 300)
	for i := range all {
		all[i] = b.create(recurring.Change{Cron: new("@every 1m")})
	}
	testenv.Exec(t, b.url, `UPDATE schedules SET began_at = n.began, done_at = n.began, next_at = n.began + interval '1 minute'
		FROM (SELECT date_trunc('second', clock_timestamp() - interval '181 seconds') AS began) n`)
	var working sync.WaitGroup
	for range 3 {
		working.Go(func() { passAll(t, b.newRunner()) })
	}
	working.Wait()
	b.pass()
	for _, p := range all {
		b.want(p, "skipped missed", "skipped missed", "submitted")
		if n := len(b.sent(p)); n != 1 {
			t.Errorf("%d pushes", n)
		}
	}
}

// TestRunner_Turns: a tenant with thousands of schedules does not make others wait.
func TestRunner_Turns(t *testing.T) {
	t.Parallel()
	b := setup(t)
	crowd := b.create(recurring.Change{Cron: new("@every 1h")}) // the next occurrence comes long after the test
	testenv.Exec(t, b.url, `
		INSERT INTO schedules (id, tenant_id, name, cron, time_zone, push, catch_up, paused, began_at, done_at, created_at, updated_at)
		SELECT gen_random_uuid(), tenant_id, name, cron, time_zone, json_build_object('recipient', n::text, 'message', '{}'::json), catch_up, paused, began_at, done_at, created_at, updated_at
		FROM schedules CROSS JOIN generate_series(1, 3000) n`)
	few := make([]recurrence.Schedule, 3)
	for i := range few {
		few[i] = b.createFor(b.newTenant(), recurring.Change{Cron: new("@every 1h")})
	}
	testenv.Exec(t, b.url, `UPDATE schedules SET began_at = n.began, done_at = n.began, next_at = n.began + interval '1 hour'
		FROM (SELECT date_trunc('second', clock_timestamp() - interval '3601 seconds') AS began) n`)
	if _, err := b.runner.Pass(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, p := range few {
		b.want(p, "submitted")
	}
	if n := testenv.Query[int](t, b.url, `SELECT count(*) FROM schedule_runs WHERE tenant_id = $1`, [16]byte(b.tenant)); n > 1000 {
		t.Errorf("%d of the crowd's were begun before", n)
	}
	b.pass()
	if n := testenv.Query[int](t, b.url, `SELECT count(*) FROM schedule_runs WHERE outcome = 'submitted' AND tenant_id = $1`, [16]byte(crowd.Tenant)); n != 3001 {
		t.Errorf("%d of the crowd's", n)
	}
}

// TestSweeper: runs are removed when they are old, and with their schedule.
func TestSweeper(t *testing.T) {
	t.Parallel()
	b := setup(t)
	kept, deleted := b.create(recurring.Change{}), b.create(recurring.Change{})
	for _, p := range []recurrence.Schedule{kept, deleted} {
		b.age(p.ID, 30*time.Minute+time.Second)
	}
	b.pass()
	if err := b.DeleteSchedule(t.Context(), b.tenant, deleted.ID); err != nil {
		t.Fatal(err)
	}
	if n, err := b.store.SweepSchedules(t.Context(), 0, 100); n != 30 || err != nil {
		t.Errorf("removed %d runs of the deleted schedule: %v", n, err)
	}
	if n := testenv.Query[int](t, b.url, `SELECT (SELECT count(*) FROM schedules) * 1000 + (SELECT count(*) FROM schedule_runs)`); n != 1030 || len(b.runs(kept)) != 30 {
		t.Errorf("%d schedules and runs are left", n)
	}
	if _, err := b.store.SweepSchedules(t.Context(), 10*time.Minute+30*time.Second, 100); err != nil {
		t.Error(err)
	}
	if n := len(b.runs(kept)); n != 10 && n != 11 {
		t.Errorf("%d runs of the last ten minutes", n)
	}
}
