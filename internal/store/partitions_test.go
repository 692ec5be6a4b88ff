package store_test

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/policy"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store"
)

const day = 24 * time.Hour

var kept = booking.Kept{Pushes: 90 * day, Sends: 100 * day}

// weekOf and dayOf are the names of the partitions that have what was so long ago.
func weekOf(table string, ago time.Duration) string {
	return table + time.Now().UTC().Add(-ago).Truncate(7*day).Format("_20060102")
}

func dayOf(ago time.Duration) string { return "sends" + time.Now().UTC().Add(-ago).Format("_20060102") }

// parts makes the partitions for what was so long ago, and has the store see them.
func (b *bundle) parts(t testing.TB, ago ...time.Duration) {
	t.Helper()
	for _, ago := range ago {
		b.exec(t, `SELECT make_partitions('pushes', at, at), make_partitions('sends', at, at) FROM (SELECT now() - $1::interval AS at) a`, ago)
	}
	b.ForgetLayouts()
}

// old makes the partitions of some of what was long ago.
func (b *bundle) old(t testing.TB) {
	t.Helper()
	b.parts(t, 97*day, 99*day, 104*day, 150*day)
	b.exec(t, `SELECT make_partitions('idempotency', now() - interval '70 days', now() - interval '10 days')`)
}

// ago books a push under a key named like its recipient, ends it in a state, and forges that this was so long ago.
func (b *bundle) ago(t testing.TB, recipient string, status push.Status, ago time.Duration) push.Push {
	t.Helper()
	p := book(t, b.Store, nil, keyed(b.tenant, recipient, recipient, "body", 0)).Push
	switch status {
	case push.Sent:
		b.finish(t, b.claimed(t, p), sent)
	case push.Sending:
		b.claimed(t, p)
	case push.Canceled:
		if _, err := b.Cancel(t.Context(), b.tenant, p.ID); err != nil {
			t.Fatal(err)
		}
	}
	b.parts(t, ago)
	b.exec(t, `UPDATE pushes SET send_at = date_trunc('second', now() - $2::interval), requested_send_at = date_trunc('second', now() - $2::interval),
		next_at = date_trunc('second', now() - $2::interval), created_at = now() - $2::interval - interval '1 minute', updated_at = now() - $2::interval + interval '2 seconds' WHERE id = $1`, p.ID, ago)
	b.exec(t, `UPDATE sends SET started_at = p.send_at, ended_at = p.send_at + interval '1 second', lease_until = p.send_at + interval '1 minute', handed_at = NULL
		FROM pushes p WHERE p.id = sends.push_id AND p.id = $1`, p.ID)
	b.exec(t, `SELECT make_partitions('idempotency', created_at, created_at) FROM pushes WHERE id = $1`, p.ID)
	b.exec(t, `UPDATE idempotency i SET created_at = p.created_at, send_at = p.send_at FROM pushes p WHERE p.id = i.push_id AND p.id = $1`, p.ID)
	return p
}

// partitions are those that there are.
func (b *bundle) partitions(t testing.TB) []string {
	t.Helper()
	return strings.Fields(ask[string](t, b.watch, `SELECT coalesce(string_agg(relname, ' ' ORDER BY relname), '') FROM pg_class
		WHERE relkind = 'r' AND relname ~ '^(pushes|sends|idempotency)_\d{8}$'`))
}

func (b *bundle) drop(t testing.TB) []string {
	t.Helper()
	dropped, err := b.DropPartitions(t.Context(), kept)
	if err != nil {
		t.Fatal(err)
	}
	return dropped
}

// TestDropPartitions: what ended longer ago than it is kept is gone a partition later at the latest. What has not ended, or
// ended later, keeps its partition.
func TestDropPartitions(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	b.old(t)
	gone := b.ago(t, "gone", push.Sent, 97*day+time.Minute)
	both := b.ago(t, "both gone", push.Sent, 104*day)
	inTime := b.ago(t, "in time", push.Sent, 90*day-time.Minute)
	waits := b.ago(t, "waits", push.Scheduled, 200*day)
	under := b.ago(t, "under way", push.Sending, 220*day)
	late := b.ago(t, "ended late", push.Canceled, 240*day)
	b.exec(t, `UPDATE pushes SET updated_at = now() - interval '89 days' WHERE id = $1`, late.ID)
	recent := b.ago(t, "key", push.Sent, 10*day)
	before := b.partitions(t)

	dropped := b.drop(t)
	after := b.partitions(t)
	if got := len(before) - len(after); got != len(dropped) || got < 10 {
		t.Errorf("dropped %d of %d: %v", got, len(before), dropped)
	}
	for _, name := range dropped {
		if !slices.Contains(before, name) || slices.Contains(after, name) {
			t.Errorf("%s is not dropped", name)
		}
	}
	for _, name := range []string{weekOf("pushes", 97*day+time.Minute), weekOf("pushes", 104*day), dayOf(104 * day), weekOf("idempotency", 37*day)} {
		if !slices.Contains(dropped, name) {
			t.Errorf("%s is not dropped", name)
		}
	}
	for _, name := range []string{
		weekOf("pushes", 90*day-time.Minute), weekOf("pushes", 200*day), weekOf("pushes", 220*day), weekOf("pushes", 240*day), dayOf(97 * day), dayOf(99 * day), weekOf("idempotency", 29*day),
	} {
		if !slices.Contains(after, name) {
			t.Errorf("%s is dropped", name)
		}
	}
	for _, p := range []push.Push{gone, both} {
		if _, err := b.Push(t.Context(), b.tenant, p.ID); err != push.ErrNotFound {
			t.Errorf("%s: %v", p.Recipient, err)
		}
	}
	for _, p := range []push.Push{inTime, waits, under, late, recent} {
		b.read(t, p)
	}
	if again := b.drop(t); len(again) != 0 {
		t.Errorf("dropped again: %v", again)
	}
	for _, f := range finishAudit(t, b.AuditSince(nil, kept, time.Time{})) { // what was forged to wait since long ago is overdue
		if f.Push != waits.ID && f.Push != under.ID {
			t.Errorf("audit: %+v", f)
		}
	}
	b.exec(t, `DELETE FROM live`)
	b.exec(t, `UPDATE pushes SET status = 'canceled', freed = true WHERE id IN ($1, $2)`, waits.ID, under.ID)
	b.exec(t, `UPDATE pushes SET updated_at = now() - interval '91 days' WHERE id = ANY ($1)`, []uuid.UUID{waits.ID, under.ID, late.ID})
	if dropped := b.drop(t); len(dropped) != 3 {
		t.Errorf("ended: dropped %v", dropped)
	}
}

// TestDropPartitions_OwnPolicy: what a tenant's own policy looks back at is kept for as long.
func TestDropPartitions_OwnPolicy(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	b.old(t)
	b.ago(t, "gone", push.Sent, 104*day)
	change := func(d *policy.Document) {
		t.Helper()
		if _, _, err := b.ChangePolicy(t.Context(), b.tenant, policy.Change{Document: d, By: "test"}); err != nil {
			t.Fatal(err)
		}
	}
	change(&policy.Document{Rules: []policy.Rule{{Name: "long", Limit: new(1), Window: "4800h"}}})
	if dropped := b.drop(t); slices.Contains(dropped, weekOf("pushes", 104*day)) || slices.Contains(dropped, dayOf(104*day)) || !slices.Contains(dropped, weekOf("idempotency", 37*day)) {
		t.Errorf("under a long window: dropped %v", dropped)
	}
	change(nil)
	if dropped := b.drop(t); !slices.Contains(dropped, weekOf("pushes", 104*day)) || !slices.Contains(dropped, dayOf(104*day)) {
		t.Errorf("after it: dropped %v", dropped)
	}
}

// TestDropPartitions_Forever: what is kept for ever is kept; keys are not.
func TestDropPartitions_Forever(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	b.old(t)
	dropped, err := b.DropPartitions(t.Context(), booking.Kept{})
	if err != nil || len(dropped) < 4 || slices.ContainsFunc(dropped, func(name string) bool { return !strings.HasPrefix(name, "idempotency_") }) {
		t.Errorf("dropped %v, %v", dropped, err)
	}
}

// TestDropPartitions_Key: a request is repeated when its push is gone. It is not booked again.
func TestDropPartitions_Key(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	b.old(t)
	p := b.ago(t, "anna", push.Sent, 20*day)
	again := func() booking.Decision { return book(t, b.Store, nil, keyed(b.tenant, "anna", "anna", "body", 0)) }
	if v := again(); v.Outcome != booking.Replayed || v.Push.ID != p.ID {
		t.Fatalf("%+v", v)
	}
	if dropped, err := b.DropPartitions(t.Context(), booking.Kept{Pushes: 10 * day, Sends: 10 * day}); err != nil || !slices.Contains(dropped, weekOf("pushes", 20*day)) {
		t.Fatal(dropped, err)
	}
	if v := again(); v.Outcome != booking.Gone || v.Push.ID != p.ID {
		t.Errorf("%+v", v)
	}
	if n := ask[int](t, b.db, `SELECT count(*) FROM pushes`); n != 0 {
		t.Errorf("%d pushes", n)
	}
	b.audit(t, nil)
}

// halfDetach has detaching a partition of pushes interrupted.
func (b *bundle) halfDetach(t testing.TB, name string) {
	t.Helper()
	reader := connect(t, b.url)
	if _, err := reader.Exec(t.Context(), `BEGIN; SELECT count(*) FROM pushes`); err != nil {
		t.Fatal(err)
	}
	killed := connect(t, b.url)
	pid := killed.PgConn().PID()
	failed := make(chan error)
	go func() {
		_, err := killed.Exec(context.Background(), `ALTER TABLE pushes DETACH PARTITION `+name+` CONCURRENTLY`)
		failed <- err
	}()
	eventually(t, "it is half detached", func() bool {
		return ask[bool](t, b.watch, `SELECT inhdetachpending FROM pg_inherits WHERE inhrelid = $1::text::regclass`, name)
	})
	b.exec(t, `SELECT pg_terminate_backend($1)`, pid)
	if err := <-failed; err == nil {
		t.Fatal("it did not wait for the reader")
	}
	if _, err := reader.Exec(t.Context(), `COMMIT`); err != nil {
		t.Fatal(err)
	}
}

// TestDropPartitions_Killed: a worker is killed after any step. The next one goes on. A partition that an operator has
// detached stays.
func TestDropPartitions_Killed(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	b.old(t)
	b.parts(t, 160*day, 170*day, 180*day)
	marked, detached, pending, taken := weekOf("pushes", 150*day), weekOf("pushes", 160*day), weekOf("pushes", 170*day), weekOf("pushes", 180*day)
	for _, name := range []string{marked, detached, pending} {
		b.exec(t, `COMMENT ON TABLE `+name+` IS 'sendquota drops this partition'`)
	}
	for _, name := range []string{detached, taken} {
		b.exec(t, `ALTER TABLE pushes DETACH PARTITION `+name+` CONCURRENTLY`)
	}
	b.halfDetach(t, pending)
	dropped := b.drop(t)
	for _, name := range []string{marked, detached, pending} {
		if !slices.Contains(dropped, name) {
			t.Errorf("%s is left", name)
		}
	}
	if !slices.Contains(b.partitions(t), taken) {
		t.Error("what an operator has detached is dropped")
	}
	if again := b.drop(t); len(again) != 0 {
		t.Errorf("dropped again: %v", again)
	}
}

// TestDropPartitions_KeptForLonger: a worker is killed before it detaches partitions, and they are to be kept for longer then, by the
// settings or by a tenant's policy. They stay, also if an operator detaches them later.
func TestDropPartitions_KeptForLonger(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	b.old(t)
	b.ago(t, "anna", push.Sent, 104*day)
	all := []string{weekOf("pushes", 104*day), dayOf(104 * day)}
	mark := func() {
		t.Helper()
		for _, name := range all {
			b.exec(t, `COMMENT ON TABLE `+name+` IS 'sendquota drops this partition'`)
		}
	}
	for name, keep := range map[string]func() booking.Kept{
		"for ever": func() booking.Kept { return booking.Kept{} },
		"a policy": func() booking.Kept {
			d := &policy.Document{Rules: []policy.Rule{{Name: "long", Limit: new(1), Window: "4800h"}}}
			if _, _, err := b.ChangePolicy(t.Context(), b.tenant, policy.Change{Document: d, By: "test"}); err != nil {
				t.Fatal(err)
			}
			return kept
		},
	} {
		mark()
		dropped, err := b.DropPartitions(t.Context(), keep())
		if err != nil || slices.ContainsFunc(all, func(name string) bool { return slices.Contains(dropped, name) }) {
			t.Fatalf("%s: dropped %v, %v", name, dropped, err)
		}
	}
	b.exec(t, `ALTER TABLE pushes DETACH PARTITION `+all[0]+` CONCURRENTLY`)
	b.exec(t, `ALTER TABLE sends DETACH PARTITION `+all[1]+` CONCURRENTLY`)
	if dropped := b.drop(t); slices.ContainsFunc(all, func(name string) bool { return slices.Contains(dropped, name) }) {
		t.Errorf("dropped what an operator has detached: %v", dropped)
	}
}

// TestDropPartitions_HalfDetached: an operator's detaching is interrupted. That partition is left alone, and the error says what to do.
func TestDropPartitions_HalfDetached(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	b.old(t)
	b.parts(t, 170*day)
	theirs := weekOf("pushes", 170*day)
	b.halfDetach(t, theirs)
	dropped, err := b.DropPartitions(t.Context(), kept)
	if err == nil || !strings.Contains(err.Error(), theirs) || slices.Contains(dropped, theirs) || !slices.Contains(b.partitions(t), theirs) {
		t.Errorf("dropped %v, %v", dropped, err)
	}
	if made, err := b.MakePartitions(t.Context()); err != nil {
		t.Errorf("made %d, %v", made, err)
	}
	b.at(t, b.Store, "anna", monday(150), nil)
	b.exec(t, `ALTER TABLE pushes DETACH PARTITION `+theirs+` FINALIZE`)
	if dropped := b.drop(t); len(dropped) == 0 || slices.Contains(dropped, theirs) {
		t.Errorf("finalized: dropped %v", dropped)
	}
}

// TestDropPartitions_Together: of many workers one drops, and the others do nothing.
func TestDropPartitions_Together(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	b.old(t)
	before := len(b.partitions(t))
	var (
		all  sync.WaitGroup
		lots [6][]string
	)
	for i := range lots {
		st := openURL(t, b.url, store.Config{})
		all.Go(func() {
			var err error
			if lots[i], err = st.DropPartitions(t.Context(), kept); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	dropped := slices.Concat(lots[:]...)
	if slices.Sort(dropped); len(slices.Compact(dropped)) != before-len(b.partitions(t)) || len(dropped) == 0 {
		t.Errorf("dropped %v", lots)
	}
	b.exec(t, `BEGIN; SELECT pg_advisory_xact_lock(1801807216)`)
	b.exec(t, `SELECT make_partitions('pushes', now() - interval '200 days', now() - interval '200 days')`)
	if dropped := b.drop(t); len(dropped) != 0 {
		t.Errorf("dropped beside another worker: %v", dropped)
	}
	b.exec(t, `COMMIT`)
}

// TestDropPartitions_Reader: a partition that is being read is dropped later; others use the table meanwhile.
func TestDropPartitions_Reader(t *testing.T) {
	t.Parallel()
	for _, table := range []string{"pushes", weekOf("pushes", 150*day)} {
		t.Run(table, func(t *testing.T) {
			t.Parallel()
			b := setupAlone(t)
			b.old(t)
			p := b.booked(t, "anna", time.Hour)
			b.exec(t, `BEGIN; SELECT count(*) FROM `+table)
			stop := make(chan struct{})
			var served sync.WaitGroup
			served.Go(func() {
				for i := 0; ; i++ {
					select {
					case <-stop:
						return
					default:
						b.booked(t, fmt.Sprint("bert ", i), time.Hour)
						b.read(t, p)
						time.Sleep(10 * time.Millisecond) // the processors are for others, too
					}
				}
			})
			dropped, err := b.DropPartitions(t.Context(), kept)
			close(stop)
			served.Wait()
			if err == nil || slices.Contains(dropped, weekOf("pushes", 150*day)) {
				t.Errorf("dropped %v, %v", dropped, err)
			}
			b.exec(t, `COMMIT`)
			if dropped := b.drop(t); !slices.Contains(dropped, weekOf("pushes", 150*day)) {
				t.Errorf("dropped %v", dropped)
			}
			b.audit(t, nil)
		})
	}
}

// TestDropPartitions_Role: programs may make partitions, and are told what they need to drop them.
func TestDropPartitions_Role(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	b.old(t)
	role := "keeper_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	b.exec(t, fmt.Sprintf(`CREATE ROLE %[1]s LOGIN PASSWORD 'secret'; GRANT ALL ON ALL TABLES IN SCHEMA public TO %[1]s; GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO %[1]s`, role))
	t.Cleanup(func() { _, _ = b.db.Exec(context.Background(), `DROP OWNED BY `+role+`; DROP ROLE `+role) })
	u, err := url.Parse(b.url)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(role, "secret")
	b.Store = openURL(t, u.String(), store.Config{})
	b.exec(t, `DROP TABLE IF EXISTS `+weekOf("pushes", -30*7*day))
	if made, err := b.MakePartitions(t.Context()); err != nil || made == 0 || !slices.Contains(b.partitions(t), weekOf("pushes", -30*7*day)) {
		t.Errorf("made %d, %v", made, err)
	}
	before := b.partitions(t)
	owner := ask[string](t, b.db, `SELECT pg_get_userbyid(relowner)::text FROM pg_class WHERE relname = 'pushes'`)
	grant := fmt.Sprintf("GRANT %s TO %s", owner, role)
	if dropped, err := b.DropPartitions(t.Context(), kept); err == nil || !strings.Contains(err.Error(), grant) || len(dropped) != 0 || len(b.partitions(t)) != len(before) {
		t.Errorf("dropped %v, %v", dropped, err)
	}
	b.exec(t, grant)
	if len(b.drop(t)) == 0 {
		t.Error("nothing is dropped")
	}
}

// TestMakePartitions_Ahead: partitions are made for as long ahead as pushes can be booked, and once.
func TestMakePartitions_Ahead(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	if _, err := b.MakePartitions(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{weekOf("pushes", 0), weekOf("pushes", -59*7*day), dayOf(0), dayOf(-13 * day), weekOf("idempotency", -34*day)} {
		if !slices.Contains(b.partitions(t), name) {
			t.Errorf("%s is not there", name)
		}
	}
	b.exec(t, `DROP TABLE `+weekOf("pushes", -20*7*day))
	b.Store = openURL(t, b.url, store.Config{})
	b.booked(t, "anna", time.Hour)
	ends := map[string]time.Duration{}
	b.Partitions(func(table string, begin, end time.Time) {
		if ends[table] = time.Until(end); begin.After(time.Now()) {
			t.Errorf("%s begins at %s", table, begin)
		}
	})
	if ends["pushes"] > 20*7*day || ends["pushes"] < 19*7*day || ends["sends"] < 13*day || ends["idempotency"] < 28*day {
		t.Errorf("there are partitions for %v", ends)
	}
	if made, err := b.MakePartitions(t.Context()); err != nil || made != 1 {
		t.Errorf("made %d, %v", made, err)
	}
	if made, err := b.MakePartitions(t.Context()); err != nil || made != 0 {
		t.Errorf("made %d, %v", made, err)
	}
}
