package partitions_test

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/store/storetest"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/policy"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store"
)

func dayOf(ago time.Duration) string { return "sends" + time.Now().UTC().Add(-ago).Format("_20060102") }

// ago books a push under a key named like its recipient, brings it into a state, and forges that this happened some
// time ago.
func (b *bundle) ago(t testing.TB, recipient string, status push.Status, ago time.Duration) push.Push {
	t.Helper()
	p := storetest.MustBook(t, b.Store, nil, storetest.MustKeyed(b.TenantID, recipient, recipient, "body", 0)).Push
	switch status {
	case push.Sent:
		b.MustFinish(t, b.Claimed(t, p), storetest.Sent)
	case push.Sending:
		b.Claimed(t, p)
	case push.Canceled:
		if _, err := b.Cancel(t.Context(), b.TenantID, p.ID); err != nil {
			t.Fatal(err)
		}
	}
	b.Parts(t, ago)
	b.Exec(t, `UPDATE pushes SET send_at = date_trunc('second', now() - $2::interval), requested_send_at = date_trunc('second', now() - $2::interval),
		next_at = date_trunc('second', now() - $2::interval), created_at = now() - $2::interval - interval '1 minute', updated_at = now() - $2::interval + interval '2 seconds' WHERE id = $1`, p.ID, ago)
	b.Exec(t, `UPDATE sends SET started_at = p.send_at, ended_at = p.send_at + interval '1 second', lease_until = p.send_at + interval '1 minute', handed_at = NULL
		FROM pushes p WHERE p.id = sends.push_id AND p.id = $1`, p.ID)
	b.Exec(t, `SELECT make_partitions('idempotency', created_at, created_at) FROM pushes WHERE id = $1`, p.ID)
	b.Exec(t, `UPDATE idempotency i SET created_at = p.created_at, send_at = p.send_at FROM pushes p WHERE p.id = i.push_id AND p.id = $1`, p.ID)
	return p
}

func (b *bundle) drop(t testing.TB) []string {
	t.Helper()
	dropped, err := b.DropPartitions(t.Context(), storetest.Kept)
	if err != nil {
		t.Fatal(err)
	}
	return dropped
}

// TestDropPartitions checks that a push is dropped at most one partition after its retention ends. A push that has not
// ended, or ended later, keeps its partition.
func TestDropPartitions(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	b.Old(t)
	gone := b.ago(t, "gone", push.Sent, 97*storetest.Day+time.Minute)
	both := b.ago(t, "both gone", push.Sent, 104*storetest.Day)
	inTime := b.ago(t, "in time", push.Sent, 90*storetest.Day-time.Minute)
	waits := b.ago(t, "waits", push.Scheduled, 200*storetest.Day)
	under := b.ago(t, "under way", push.Sending, 220*storetest.Day)
	late := b.ago(t, "ended late", push.Canceled, 240*storetest.Day)
	b.Exec(t, `UPDATE pushes SET updated_at = now() - interval '89 days' WHERE id = $1`, late.ID)
	recent := b.ago(t, "key", push.Sent, 10*storetest.Day)
	before := b.MustPartitions(t)

	dropped := b.drop(t)
	after := b.MustPartitions(t)
	if got := len(before) - len(after); got != len(dropped) || got < 10 {
		t.Errorf("dropped %d of %d: %v", got, len(before), dropped)
	}
	for _, name := range dropped {
		if !slices.Contains(before, name) || slices.Contains(after, name) {
			t.Errorf("%s is not dropped", name)
		}
	}
	for _, name := range []string{storetest.WeekOf("pushes", 97*storetest.Day+time.Minute), storetest.WeekOf("pushes", 104*storetest.Day), dayOf(104 * storetest.Day), storetest.WeekOf("idempotency", 37*storetest.Day)} {
		if !slices.Contains(dropped, name) {
			t.Errorf("%s is not dropped", name)
		}
	}
	for _, name := range []string{
		storetest.WeekOf("pushes", 90*storetest.Day-time.Minute), storetest.WeekOf("pushes", 200*storetest.Day), storetest.WeekOf("pushes", 220*storetest.Day), storetest.WeekOf("pushes", 240*storetest.Day), dayOf(97 * storetest.Day), dayOf(99 * storetest.Day), storetest.WeekOf("idempotency", 29*storetest.Day),
	} {
		if !slices.Contains(after, name) {
			t.Errorf("%s is dropped", name)
		}
	}
	for _, p := range []push.Push{gone, both} {
		if _, err := b.Push(t.Context(), b.TenantID, p.ID); err != push.ErrNotFound {
			t.Errorf("%s: %v", p.Recipient, err)
		}
	}
	for _, p := range []push.Push{inTime, waits, under, late, recent} {
		b.MustRead(t, p)
	}
	if again := b.drop(t); len(again) != 0 {
		t.Errorf("dropped again: %v", again)
	}
	for _, f := range storetest.FinishAudit(t, b.AuditSince(nil, storetest.Kept, time.Time{})) { // pushes that were forged to wait since long ago are overdue
		if f.Push != waits.ID && f.Push != under.ID {
			t.Errorf("audit: %+v", f)
		}
	}
	b.Exec(t, `DELETE FROM live`)
	b.Exec(t, `UPDATE pushes SET status = 'canceled', freed = true WHERE id IN ($1, $2)`, waits.ID, under.ID)
	b.Exec(t, `UPDATE pushes SET updated_at = now() - interval '91 days' WHERE id = ANY ($1)`, []uuid.UUID{waits.ID, under.ID, late.ID})
	if dropped := b.drop(t); len(dropped) != 3 {
		t.Errorf("ended: dropped %v", dropped)
	}
}

// TestDropPartitions_OwnPolicy checks that rows are kept for as long as a tenant's own policy reads back.
func TestDropPartitions_OwnPolicy(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	b.Old(t)
	b.ago(t, "gone", push.Sent, 104*storetest.Day)
	change := func(d *policy.Document) {
		t.Helper()
		if _, _, err := b.ChangePolicy(t.Context(), b.TenantID, policy.Change{Document: d, By: "test"}); err != nil {
			t.Fatal(err)
		}
	}
	change(&policy.Document{Rules: []policy.Rule{{Name: "long", Limit: new(1), Window: "4800h"}}})
	if dropped := b.drop(t); slices.Contains(dropped, storetest.WeekOf("pushes", 104*storetest.Day)) || slices.Contains(dropped, dayOf(104*storetest.Day)) || !slices.Contains(dropped, storetest.WeekOf("idempotency", 37*storetest.Day)) {
		t.Errorf("under a long window: dropped %v", dropped)
	}
	change(nil)
	if dropped := b.drop(t); !slices.Contains(dropped, storetest.WeekOf("pushes", 104*storetest.Day)) || !slices.Contains(dropped, dayOf(104*storetest.Day)) {
		t.Errorf("after it: dropped %v", dropped)
	}
}

// TestDropPartitions_Forever checks that pushes and sends are kept for ever if the retention has no end; keys are not.
func TestDropPartitions_Forever(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	b.Old(t)
	dropped, err := b.DropPartitions(t.Context(), booking.Kept{})
	if err != nil || len(dropped) < 4 || slices.ContainsFunc(dropped, func(name string) bool { return !strings.HasPrefix(name, "idempotency_") }) {
		t.Errorf("dropped %v, %v", dropped, err)
	}
}

// TestDropPartitions_Key checks that a repeated request is not booked again after its push was dropped.
func TestDropPartitions_Key(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	b.Old(t)
	p := b.ago(t, "anna", push.Sent, 20*storetest.Day)
	again := func() booking.Decision {
		return storetest.MustBook(t, b.Store, nil, storetest.MustKeyed(b.TenantID, "anna", "anna", "body", 0))
	}
	if v := again(); v.Outcome != booking.Replayed || v.Push.ID != p.ID {
		t.Fatalf("%+v", v)
	}
	if dropped, err := b.DropPartitions(t.Context(), booking.Kept{Pushes: 10 * storetest.Day, Sends: 10 * storetest.Day}); err != nil || !slices.Contains(dropped, storetest.WeekOf("pushes", 20*storetest.Day)) {
		t.Fatal(dropped, err)
	}
	if v := again(); v.Outcome != booking.Gone || v.Push.ID != p.ID {
		t.Errorf("%+v", v)
	}
	if n := storetest.Ask[int](t, b.DB, `SELECT count(*) FROM pushes`); n != 0 {
		t.Errorf("%d pushes", n)
	}
	b.MustAudit(t, nil)
}

// halfDetach interrupts the detaching of a partition of pushes.
func (b *bundle) halfDetach(t testing.TB, name string) {
	t.Helper()
	reader := storetest.Connect(t, b.URL)
	if _, err := reader.Exec(t.Context(), `BEGIN; SELECT count(*) FROM pushes`); err != nil {
		t.Fatal(err)
	}
	killed := storetest.Connect(t, b.URL)
	pid := killed.PgConn().PID()
	failed := make(chan error)
	go func() {
		_, err := killed.Exec(context.Background(), `ALTER TABLE pushes DETACH PARTITION `+name+` CONCURRENTLY`)
		failed <- err
	}()
	storetest.Eventually(t, "it is half detached", func() bool {
		return storetest.Ask[bool](t, b.Watch, `SELECT inhdetachpending FROM pg_inherits WHERE inhrelid = $1::text::regclass`, name)
	})
	b.Exec(t, `SELECT pg_terminate_backend($1)`, pid)
	if err := <-failed; err == nil {
		t.Fatal("it did not wait for the reader")
	}
	if _, err := reader.Exec(t.Context(), `COMMIT`); err != nil {
		t.Fatal(err)
	}
}

// TestDropPartitions_Killed checks that a worker continues after another one was killed at any step. A partition that
// an operator has detached stays.
func TestDropPartitions_Killed(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	b.Old(t)
	b.Parts(t, 160*storetest.Day, 170*storetest.Day, 180*storetest.Day)
	marked, detached, pending, taken := storetest.WeekOf("pushes", 150*storetest.Day), storetest.WeekOf("pushes", 160*storetest.Day), storetest.WeekOf("pushes", 170*storetest.Day), storetest.WeekOf("pushes", 180*storetest.Day)
	for _, name := range []string{marked, detached, pending} {
		b.Exec(t, `COMMENT ON TABLE `+name+` IS 'sendquota drops this partition'`)
	}
	for _, name := range []string{detached, taken} {
		b.Exec(t, `ALTER TABLE pushes DETACH PARTITION `+name+` CONCURRENTLY`)
	}
	b.halfDetach(t, pending)
	dropped := b.drop(t)
	for _, name := range []string{marked, detached, pending} {
		if !slices.Contains(dropped, name) {
			t.Errorf("%s is left", name)
		}
	}
	if !slices.Contains(b.MustPartitions(t), taken) {
		t.Error("what an operator has detached is dropped")
	}
	if again := b.drop(t); len(again) != 0 {
		t.Errorf("dropped again: %v", again)
	}
}

// TestDropPartitions_KeptForLonger checks that partitions stay if a worker was killed before it detached them, and the
// settings or a tenant's policy keep them for longer afterwards. They stay even if an operator detaches them later.
func TestDropPartitions_KeptForLonger(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	b.Old(t)
	b.ago(t, "anna", push.Sent, 104*storetest.Day)
	all := []string{storetest.WeekOf("pushes", 104*storetest.Day), dayOf(104 * storetest.Day)}
	mark := func() {
		t.Helper()
		for _, name := range all {
			b.Exec(t, `COMMENT ON TABLE `+name+` IS 'sendquota drops this partition'`)
		}
	}
	for name, keep := range map[string]func() booking.Kept{
		"for ever": func() booking.Kept { return booking.Kept{} },
		"a policy": func() booking.Kept {
			d := &policy.Document{Rules: []policy.Rule{{Name: "long", Limit: new(1), Window: "4800h"}}}
			if _, _, err := b.ChangePolicy(t.Context(), b.TenantID, policy.Change{Document: d, By: "test"}); err != nil {
				t.Fatal(err)
			}
			return storetest.Kept
		},
	} {
		mark()
		dropped, err := b.DropPartitions(t.Context(), keep())
		if err != nil || slices.ContainsFunc(all, func(name string) bool { return slices.Contains(dropped, name) }) {
			t.Fatalf("%s: dropped %v, %v", name, dropped, err)
		}
	}
	b.Exec(t, `ALTER TABLE pushes DETACH PARTITION `+all[0]+` CONCURRENTLY`)
	b.Exec(t, `ALTER TABLE sends DETACH PARTITION `+all[1]+` CONCURRENTLY`)
	if dropped := b.drop(t); slices.ContainsFunc(all, func(name string) bool { return slices.Contains(dropped, name) }) {
		t.Errorf("dropped what an operator has detached: %v", dropped)
	}
}

// TestDropPartitions_HalfDetached checks that a partition is left alone if an operator's detaching was interrupted, and
// that the error names it.
func TestDropPartitions_HalfDetached(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	b.Old(t)
	b.Parts(t, 170*storetest.Day)
	theirs := storetest.WeekOf("pushes", 170*storetest.Day)
	b.halfDetach(t, theirs)
	dropped, err := b.DropPartitions(t.Context(), storetest.Kept)
	if err == nil || !strings.Contains(err.Error(), theirs) || slices.Contains(dropped, theirs) || !slices.Contains(b.MustPartitions(t), theirs) {
		t.Errorf("dropped %v, %v", dropped, err)
	}
	if made, err := b.MakePartitions(t.Context()); err != nil {
		t.Errorf("made %d, %v", made, err)
	}
	b.At(t, b.Store, "anna", storetest.Monday(150), nil)
	b.Exec(t, `ALTER TABLE pushes DETACH PARTITION `+theirs+` FINALIZE`)
	if dropped := b.drop(t); len(dropped) == 0 || slices.Contains(dropped, theirs) {
		t.Errorf("finalized: dropped %v", dropped)
	}
}

// TestDropPartitions_Together checks that one of many workers drops partitions, and the others do nothing.
func TestDropPartitions_Together(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	b.Old(t)
	before := len(b.MustPartitions(t))
	var (
		all  sync.WaitGroup
		lots [6][]string
	)
	for i := range lots {
		st := storetest.OpenURL(t, b.URL, store.Config{})
		all.Go(func() {
			var err error
			if lots[i], err = st.DropPartitions(t.Context(), storetest.Kept); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	dropped := slices.Concat(lots[:]...)
	if slices.Sort(dropped); len(slices.Compact(dropped)) != before-len(b.MustPartitions(t)) || len(dropped) == 0 {
		t.Errorf("dropped %v", lots)
	}
	b.Exec(t, `BEGIN; SELECT pg_advisory_xact_lock(1801807216)`)
	b.Exec(t, `SELECT make_partitions('pushes', now() - interval '200 days', now() - interval '200 days')`)
	if dropped := b.drop(t); len(dropped) != 0 {
		t.Errorf("dropped beside another worker: %v", dropped)
	}
	b.Exec(t, `COMMIT`)
}

// TestDropPartitions_Reader checks that a partition that is being read is dropped later, and that others use the table
// meanwhile.
func TestDropPartitions_Reader(t *testing.T) {
	t.Parallel()
	for _, table := range []string{"pushes", storetest.WeekOf("pushes", 150*storetest.Day)} {
		t.Run(table, func(t *testing.T) {
			t.Parallel()
			b := setupAlone(t)
			b.Old(t)
			p := b.Booked(t, "anna", time.Hour)
			b.Exec(t, `BEGIN; SELECT count(*) FROM `+table)
			stop := make(chan struct{})
			var served sync.WaitGroup
			served.Go(func() {
				for i := 0; ; i++ {
					select {
					case <-stop:
						return
					default:
						b.Booked(t, fmt.Sprint("bert ", i), time.Hour)
						b.MustRead(t, p)
						time.Sleep(10 * time.Millisecond) // leave the processors to others, too
					}
				}
			})
			dropped, err := b.DropPartitions(t.Context(), storetest.Kept)
			close(stop)
			served.Wait()
			if err == nil || slices.Contains(dropped, storetest.WeekOf("pushes", 150*storetest.Day)) {
				t.Errorf("dropped %v, %v", dropped, err)
			}
			b.Exec(t, `COMMIT`)
			if dropped := b.drop(t); !slices.Contains(dropped, storetest.WeekOf("pushes", 150*storetest.Day)) {
				t.Errorf("dropped %v", dropped)
			}
			b.MustAudit(t, nil)
		})
	}
}

// TestDropPartitions_Role checks that programs may make partitions, and that the error of a drop names the missing
// privilege.
func TestDropPartitions_Role(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	b.Old(t)
	role := "keeper_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	b.Exec(t, fmt.Sprintf(`CREATE ROLE %[1]s LOGIN PASSWORD 'secret'; GRANT ALL ON ALL TABLES IN SCHEMA public TO %[1]s; GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO %[1]s`, role))
	t.Cleanup(func() { _, _ = b.DB.Exec(context.Background(), `DROP OWNED BY `+role+`; DROP ROLE `+role) })
	u, err := url.Parse(b.URL)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(role, "secret")
	b.Store = storetest.OpenURL(t, u.String(), store.Config{})
	b.Exec(t, `DROP TABLE IF EXISTS `+storetest.WeekOf("pushes", -30*7*storetest.Day))
	if made, err := b.MakePartitions(t.Context()); err != nil || made == 0 || !slices.Contains(b.MustPartitions(t), storetest.WeekOf("pushes", -30*7*storetest.Day)) {
		t.Errorf("made %d, %v", made, err)
	}
	before := b.MustPartitions(t)
	owner := storetest.Ask[string](t, b.DB, `SELECT pg_get_userbyid(relowner)::text FROM pg_class WHERE relname = 'pushes'`)
	grant := fmt.Sprintf("GRANT %s TO %s", owner, role)
	if dropped, err := b.DropPartitions(t.Context(), storetest.Kept); err == nil || !strings.Contains(err.Error(), grant) || len(dropped) != 0 || len(b.MustPartitions(t)) != len(before) {
		t.Errorf("dropped %v, %v", dropped, err)
	}
	b.Exec(t, grant)
	if len(b.drop(t)) == 0 {
		t.Error("nothing is dropped")
	}
}

// TestMakePartitions_Ahead checks that partitions are made once, for as far ahead as pushes can be booked.
func TestMakePartitions_Ahead(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	if _, err := b.MakePartitions(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{storetest.WeekOf("pushes", 0), storetest.WeekOf("pushes", -59*7*storetest.Day), dayOf(0), dayOf(-13 * storetest.Day), storetest.WeekOf("idempotency", -34*storetest.Day)} {
		if !slices.Contains(b.MustPartitions(t), name) {
			t.Errorf("%s is not there", name)
		}
	}
	b.Exec(t, `DROP TABLE `+storetest.WeekOf("pushes", -20*7*storetest.Day))
	b.Store = storetest.OpenURL(t, b.URL, store.Config{})
	b.Booked(t, "anna", time.Hour)
	ends := map[string]time.Duration{}
	b.Partitions(func(table string, begin, end time.Time) {
		if ends[table] = time.Until(end); begin.After(time.Now()) {
			t.Errorf("%s begins at %s", table, begin)
		}
	})
	if ends["pushes"] > 20*7*storetest.Day || ends["pushes"] < 19*7*storetest.Day || ends["sends"] < 13*storetest.Day || ends["idempotency"] < 28*storetest.Day {
		t.Errorf("there are partitions for %v", ends)
	}
	if made, err := b.MakePartitions(t.Context()); err != nil || made != 1 {
		t.Errorf("made %d, %v", made, err)
	}
	if made, err := b.MakePartitions(t.Context()); err != nil || made != 0 {
		t.Errorf("made %d, %v", made, err)
	}
}
