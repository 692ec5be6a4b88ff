package pg_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/internal/store/storetest"
)

// wantIn checks that a push is in one table, once.
func (b *bundle) wantIn(t testing.TB, p push.Push, begin time.Time) {
	t.Helper()
	got := storetest.Ask[string](t, b.DB, `SELECT coalesce(string_agg(tableoid::regclass::text, ' '), '') FROM pushes WHERE id = $1`, p.ID)
	if want := begin.Format("pushes_20060102"); got != want {
		t.Errorf("%s is in %q, want %s", p.ID, got, want)
	}
}

// TestParts_Move checks that a push that is moved to another week is only in the table of that week, and is found by
// its id and by its time. Each move reports one event. The push is sent when it is due.
func TestParts_Move(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	w := b.Hook(t)
	p := b.At(t, b.Store, "anna", storetest.Monday(1).Add(time.Hour), nil).Push
	b.wantIn(t, p, storetest.Monday(1))
	for _, to := range []time.Time{storetest.Monday(3), storetest.Monday(3).Add(time.Hour), storetest.Monday(2).Add(-time.Second), storetest.Began} {
		if err := b.Move(b.Store, p, to); err != nil {
			t.Fatal(err)
		}
		p.SendAt = to
		b.wantIn(t, p, to.Truncate(storetest.Week))
		if got := b.MustRead(t, p); !got.SendAt.Equal(to) || got.Message == nil || got.Recipient != "anna" {
			t.Errorf("%+v", got)
		}
		if all, _ := b.ListAll(t, push.Filter{From: to, Until: to.Add(time.Second)}, 10); len(all) != 1 || all[0].ID != p.ID {
			t.Errorf("listed %+v", all)
		}
	}
	b.MustFinish(t, b.Claimed(t, p), storetest.Sent)
	b.WantStatus(t, p, push.Sent)
	if diff := cmp.Diff([]string{"push.scheduled", "push.scheduled", "push.scheduled", "push.scheduled", "push.scheduled", "push.sent"}, b.EventsOf(t, w, p)); diff != "" {
		t.Error(diff)
	}
	b.MustAudit(t, nil)
}

// TestParts_Edge checks windows that span two weeks.
func TestParts_Edge(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	edge := storetest.Monday(2)
	for _, row := range []struct {
		at   time.Duration // from the edge
		want booking.Outcome
	}{
		{-20 * time.Second, booking.Booked},
		{39 * time.Second, booking.NoPlace},
		{40 * time.Second, booking.Booked},
		{-79 * time.Second, booking.NoPlace},
		{0, booking.NoPlace},
		{-80 * time.Second, booking.Booked},
	} {
		if v := b.At(t, b.Store, "anna", edge.Add(row.at), storetest.ThreeRules[:1]); v.Outcome != row.want {
			t.Errorf("%s from the edge: %v, want %v", row.at, v.Outcome, row.want)
		}
	}
	day := quota.Policy{{Name: "week", Limit: 3, Window: storetest.Week}}
	for n := range 4 {
		v := b.At(t, b.Store, "bert", edge.Add(time.Duration(n-2)*24*time.Hour), day)
		if (v.Outcome == booking.Booked) != (n < 3) {
			t.Errorf("number %d of three a week: %v", n+1, v.Outcome)
		}
	}
	b.MustAudit(t, nil)
}

// TestParts_Missing checks that a missing partition for a push or an attempt is made. A program that does not know the
// partition yet counts its rows.
func TestParts_Missing(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	late := storetest.OpenURL(t, b.URL, store.Config{})
	if _, err := late.Push(t.Context(), b.TenantID, uuid.New()); err == nil { // reads the list of partitions
		t.Fatal("there is a push")
	}
	far := storetest.Monday(150).Add(50 * time.Hour)
	p := b.At(t, b.Store, "anna", far, storetest.ThreeRules).Push
	b.wantIn(t, p, storetest.Monday(150))
	if held, _, _, err := late.BookingsBetween(t.Context(), quota.Recipient{Tenant: b.TenantID, ID: "anna"}, storetest.ThreeRules, far.Add(-time.Hour), far.Add(time.Hour)); err != nil || len(held) != 1 {
		t.Errorf("a glance sees %+v, %v", held, err)
	}
	if v := b.At(t, late, "anna", far.Add(59*time.Second), storetest.ThreeRules); v.Outcome != booking.NoPlace {
		t.Errorf("two of one a minute: %v", v.Outcome)
	}
	if v := b.At(t, late, "anna", far.Add(60*time.Second), storetest.ThreeRules); v.Outcome != booking.Booked {
		t.Errorf("the next minute: %v", v.Outcome)
	}
	if err := b.Move(late, p, storetest.Monday(170)); err != nil {
		t.Fatal(err)
	}
	b.wantIn(t, p, storetest.Monday(170))
	if got, err := b.Push(t.Context(), p.Tenant, p.ID); err != nil || !got.SendAt.Equal(storetest.Monday(170)) {
		t.Errorf("%+v, %v", got, err)
	}
	var o booking.Order
	for n := range 12 {
		o.Drafts = append(o.Drafts, storetest.Draft(b.TenantID, "carl", storetest.Monday(180+n).Sub(storetest.Began)))
	}
	if all, err := b.Book(t.Context(), o); err != nil || all[11].Outcome != booking.Booked {
		t.Errorf("twelve weeks at once: %+v, %v", all, err)
	}
	rows, _ := b.DB.Query(t.Context(), `SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'sends'::regclass`)
	days, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	b.Exec(t, `DROP TABLE `+strings.Join(days, ", "))
	due := b.Booked(t, "bert", -time.Second)
	b.MustFinish(t, b.Claimed(t, due), storetest.Sent)
	if got := b.MustRead(t, due); got.Status != push.Sent || len(got.Sends) != 1 {
		t.Errorf("%+v", got)
	}
	if n := storetest.Ask[int](t, b.DB, `SELECT count(*) FROM pg_inherits WHERE inhparent = 'sends'::regclass`); n != 1 {
		t.Errorf("%d days", n)
	}
	b.MustAudit(t, nil)
}

// TestParts_List checks that a list runs through all weeks in order, forwards, with pages of any size.
func TestParts_List(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	var want []string
	for n := range 12 {
		p := b.At(t, b.Store, fmt.Sprint("r", n%3), storetest.Monday(n*5/4).Add(time.Duration(n)*time.Second), nil).Push
		want = append(want, p.ID.String())
	}
	for _, limit := range []int{1, 3, 7, 11, 12, 100} {
		for recipient, every := range map[string]int{"": 1, "r1": 3} {
			all, _ := b.ListAll(t, push.Filter{Recipient: recipient}, limit)
			var got, some []string
			for _, p := range all {
				got = append(got, p.ID.String())
			}
			for n := every / 3; n < len(want); n += every {
				some = append(some, want[n])
			}
			if diff := cmp.Diff(some, got); diff != "" {
				t.Errorf("recipient %q, pages of %d: %s", recipient, limit, diff)
			}
		}
	}
}

// TestParts_Ids checks that a push is found by its id, whether the id names its week, another week, or a week without a
// table.
func TestParts_Ids(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	at := storetest.Monday(4).Add(time.Hour)
	for name, booked := range map[string]time.Time{"its week": at, "another": at.Add(-2 * storetest.Week), "no week at all": at.Add(1000 * storetest.Week)} {
		id := push.NewID(booked, push.RecipientKey(b.TenantID, name))
		d := storetest.Draft(b.TenantID, name, at.Sub(storetest.Began))
		d.Push.ID = id
		p := storetest.MustBook(t, b.Store, nil, d).Push
		b.wantIn(t, p, storetest.Monday(4))
		if got := b.MustRead(t, p); got.Recipient != name {
			t.Errorf("%s: %+v", name, got)
		}
		if err := b.Move(b.Store, p, at.Add(storetest.Week)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got, err := b.Cancel(t.Context(), b.TenantID, id); err != nil || got.Status != push.Canceled {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// TestParts_Midnight checks that a claim counts the sends of the days before.
func TestParts_Midnight(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		window time.Duration
		want   booking.ClaimOutcome
	}{{72 * time.Hour, booking.PutOff}, {24 * time.Hour, booking.Claimed}} {
		b := setupAlone(t)
		p := b.Booked(t, "anna", -time.Second)
		b.Parts(t, 50*time.Hour)
		b.Attempted(t, b.TenantID, "anna", push.Delivered, 50*time.Hour, 50*time.Hour)
		if c := b.MustClaim(t, "anna", quota.Policy{{Name: "rule", Limit: 1, Window: row.window}}); c.Outcome != row.want {
			t.Errorf("one in %s, after one 50 hours ago: %v, want %v", row.window, c.Outcome, row.want)
		} else if row.want == booking.Claimed {
			b.MustFinish(t, c, storetest.Sent)
			if got := b.MustRead(t, p); len(got.Sends) != 1 {
				t.Errorf("%+v", got)
			}
		}
	}
}

// TestParts_Locks checks that each statement about a push locks only the necessary partitions if there are some fifty.
func TestParts_Locks(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	w := b.Hook(t)
	warm := func(name string, do func()) { do() }
	steps := func(run func(name string, do func())) {
		var p push.Push
		name := uuid.NewString()
		check := func(err error) {
			t.Helper()
			if err != nil {
				t.Error(err)
			}
		}
		run("book", func() { p = b.At(t, b.Store, name, storetest.Began, storetest.ThreeRules).Push })
		run("book, refused", func() { b.At(t, b.Store, name, storetest.Began.Add(time.Second), storetest.ThreeRules) })
		run("read by its id", func() { b.MustRead(t, p) })
		run("look", func() {
			_, _, _, err := b.BookingsBetween(t.Context(), quota.Recipient{Tenant: b.TenantID, ID: name}, storetest.ThreeRules, storetest.Began.Add(-24*time.Hour), storetest.Began.Add(24*time.Hour))
			check(err)
		})
		run("list", func() {
			_, err := b.List(t.Context(), b.TenantID, push.Filter{From: storetest.Began.Add(-24 * time.Hour), Until: storetest.Began.Add(24 * time.Hour)}, push.Position{}, 10)
			check(err)
		})
		run("count caps", func() {
			_, err := b.Recipients(t.Context(), b.TenantID, booking.DayOf(storetest.Began), 10)
			check(err)
		})
		run("move", func() { check(b.Move(b.Store, p, storetest.Began.Add(-time.Second))) })
		run("claim and finish", func() { b.MustFinish(t, b.MustClaim(t, name, storetest.ThreeRules), storetest.TryAgain) })
		run("claim and finish again", func() { b.MustFinish(t, b.MustClaim(t, name, nil), storetest.Sent) })
		run("cancel", func() {
			q := b.At(t, b.Store, name, storetest.Began.Add(time.Hour), nil).Push
			_, err := b.Cancel(t.Context(), b.TenantID, q.ID)
			check(err)
		})
		run("expire", func() {
			d := storetest.Draft(b.TenantID, name, -2*time.Hour)
			d.Push.TTL = time.Hour
			q := storetest.MustBook(t, b.Store, nil, d).Push
			_, err := b.Expire(t.Context(), push.Lanes(1), 10)
			check(err)
			b.WantStatus(t, q, push.Expired)
		})
		run("events", func() {
			want := []string{"push.scheduled", "push.scheduled", "push.deferred", "push.sent"}
			if diff := cmp.Diff(want, b.EventsOf(t, w, p)); diff != "" {
				t.Error(diff)
			}
		})
	}
	b.Exec(t, `SELECT make_partitions('pushes', now() - interval '15 weeks', now() + interval '15 weeks'), make_partitions('sends', now() - interval '10 days', now() + interval '10 days')`)
	steps(warm)
	near := []string{storetest.Began.Add(-storetest.Week).Truncate(storetest.Week).Format("pushes_20060102"), storetest.Began.Truncate(storetest.Week).Format("pushes_20060102"), storetest.Began.Add(storetest.Week).Truncate(storetest.Week).Format("pushes_20060102")}
	for day := -3; day <= 1; day++ {
		near = append(near, storetest.Began.AddDate(0, 0, day).Format("sends_20060102"))
	}
	rows, _ := b.DB.Query(t.Context(), `SELECT relname FROM pg_inherits JOIN pg_class c ON c.oid = inhrelid WHERE inhparent IN ('pushes'::regclass, 'sends'::regclass)`)
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(tables) < 50 {
		t.Fatal(len(tables), err)
	}
	tables = slices.DeleteFunc(tables, func(name string) bool { return slices.Contains(near, name) })
	watch := storetest.Connect(t, b.URL)
	for _, name := range []string{"fresh plans", "kept plans"} {
		if name == "fresh plans" {
			b.Store = storetest.OpenURL(t, b.URL, store.Config{})
		}
		t.Run(name, func(t *testing.T) {
			if name == "fresh plans" {
				if _, err := b.Push(t.Context(), b.TenantID, uuid.New()); err == nil { // loads the layout
					t.Fatal("there is a push")
				}
			}
			b.Exec(t, `BEGIN; LOCK TABLE `+strings.Join(tables, ", "))
			defer b.Exec(t, `ROLLBACK`)
			steps(func(what string, do func()) {
				ctx, stop := context.WithCancel(t.Context())
				var all sync.WaitGroup
				all.Go(func() { // a statement that waits for another partition times out; this reports the partition
					for ctx.Err() == nil {
						var waits string
						err := watch.QueryRow(t.Context(), `SELECT coalesce(min(format('%s: %s', l.relation::regclass, left(regexp_replace(a.query, '\s+', ' ', 'g'), 200))), '')
							FROM pg_locks l JOIN pg_stat_activity a USING (pid) WHERE NOT l.granted AND a.datname = current_database()`).Scan(&waits)
						if err != nil || waits != "" {
							t.Errorf("%s waits for %s (%v)", what, waits, err)
							return
						}
						time.Sleep(20 * time.Millisecond)
					}
				})
				do()
				stop()
				all.Wait()
			})
		})
	}
}

// TestParts_KeptPlan shows why statements name partitions. A cached plan locks all partitions and their indexes, even
// if it is for rows of one partition.
func TestParts_KeptPlan(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	b.Exec(t, `SELECT make_partitions('pushes', now() - interval '10 weeks', now() + interval '9 weeks')`)
	b.Exec(t, `SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off`)
	locks := func(table string) (n int, took time.Duration) {
		t.Helper()
		b.Exec(t, fmt.Sprintf(`PREPARE %[1]s_read (uuid, timestamptz) AS SELECT status FROM %[1]s WHERE id = $1 AND send_at = $2`, table))
		read := fmt.Sprintf(`EXECUTE %s_read ('%s', '%s')`, table, uuid.New(), storetest.Began.Format(time.RFC3339))
		b.Exec(t, `BEGIN; `+read)
		n = storetest.Ask[int](t, b.DB, `SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'relation' AND relation::regclass::text ~ '^pushes'`)
		b.Exec(t, `COMMIT`)
		from := time.Now()
		for range 200 {
			b.Exec(t, read)
		}
		return n, time.Since(from) / 200
	}
	whole, wholeTime := locks("pushes")
	part, partTime := locks(storetest.Began.Truncate(storetest.Week).Format("pushes_20060102"))
	t.Logf("a kept plan that names the table takes %d locks and %s, one that names a partition takes %d locks and %s", whole, wholeTime, part, partTime)
	table := 1 + storetest.Ask[int](t, b.DB, `SELECT count(*) FROM pg_index WHERE indrelid = 'pushes'::regclass`) // the partition and its indexes
	if whole < 80 || part > table {
		t.Errorf("%d locks and %d", whole, part)
	}
}

// TestBook_PartitionNotMade checks that the store is unavailable while Postgres fails to make the partition that a push
// needs.
func TestBook_PartitionNotMade(t *testing.T) {
	t.Parallel()
	b := setupNew(t)
	made := storetest.Ask[string](t, b.DB, `SELECT pg_get_functiondef('make_partitions(text, timestamptz, timestamptz)'::regprocedure)`)
	b.Exec(t, `CREATE OR REPLACE FUNCTION make_partitions(parent text, first timestamptz, last timestamptz) RETURNS int LANGUAGE plpgsql AS $$
		BEGIN RAISE 'it ends' USING ERRCODE = '57P01'; END $$`)
	far := booking.Order{Drafts: []booking.Draft{storetest.Draft(b.TenantID, "anna", 40*7*24*time.Hour)}}
	if _, err := b.Book(t.Context(), far); !errors.Is(err, push.ErrUnavailable) {
		t.Errorf("%v", err)
	}
	b.Exec(t, made)
	if v, err := b.Book(t.Context(), far); err != nil || v[0].Outcome != booking.Booked {
		t.Errorf("afterwards: %+v, %v", v, err)
	}
}
