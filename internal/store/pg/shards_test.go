package pg_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/broadcast"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/record"
	"github.com/sendquota/sendquota/internal/store/campaigns"
	"github.com/sendquota/sendquota/internal/store/pg"
	"github.com/sendquota/sendquota/internal/store/storetest"
	"github.com/sendquota/sendquota/internal/webhook"
)

// setupShards returns a bundle with one shard in tables apart from all others. If the shards were on different servers,
// a statement that reads the others would query other servers.
func setupShards(t *testing.T, shard int) *bundle {
	t.Helper()
	b := setupNew(t)
	b.Exec(t, fmt.Sprintf(`
		ALTER TABLE live RENAME TO whole;
		CREATE TABLE live (LIKE whole INCLUDING ALL) PARTITION BY LIST (shard);
		CREATE TABLE live_one PARTITION OF live FOR VALUES IN (%[1]d);
		CREATE TABLE live_rest PARTITION OF live DEFAULT;
		DO $$ DECLARE part text; bounds text; whole text; BEGIN
			FOR part, bounds, whole IN
				SELECT c.relname, pg_get_expr(c.relpartbound, c.oid), p.relname FROM pg_inherits i
				JOIN pg_class c ON c.oid = i.inhrelid JOIN pg_class p ON p.oid = i.inhparent WHERE p.relname IN ('pushes', 'sends')
			LOOP
				EXECUTE format('DROP TABLE %%I', part);
				EXECUTE format('CREATE TABLE %%I PARTITION OF %%I %%s PARTITION BY LIST (shard)', part, whole, bounds);
				EXECUTE format('CREATE TABLE %%I PARTITION OF %%I FOR VALUES IN (%[1]d)', part || '_one', part);
				EXECUTE format('CREATE TABLE %%I PARTITION OF %%I DEFAULT', part || '_rest', part);
			END LOOP;
		END $$`, shard))
	b.Close()
	b.Store = storetest.OpenURL(t, b.URL, pg.Config{Lanes: push.Shards})
	return b
}

// TestStore_OneShard checks that no statement about a push reads rows of other shards if each shard is a lane. Three kinds
// of operations touch several shards and are left out:
//   - counts and lists of all of a tenant's pushes, and the audit: they are about all recipients;
//   - batches that are atomic, have an Idempotency-Key, or are of a tenant with caps: they are decided as a whole;
//   - reads by an unknown id, because it names a random shard.
func TestStore_OneShard(t *testing.T) {
	t.Parallel()
	const recipient = "anna"
	tenant := uuid.MustParse("0c6c6a4f-3f5e-4a44-9a77-2a6a7ff0a5a1")
	key := push.RecipientKey(tenant, recipient)
	b := setupShards(t, push.Shard(key))
	b.TenantID = tenant
	b.Exec(t, `INSERT INTO tenants (id, name) VALUES ($1, 'one shard')`, tenant)
	b.Exec(t, `INSERT INTO webhooks (id, tenant_id, url, events, secret) VALUES (gen_random_uuid(), $1, 'https://example.com', $2, 's')`, tenant, webhook.Events)
	lane := push.Lane{First: push.Shard(key), Last: push.Shard(key)}
	campaign := b.MustCampaign(t, recipient)
	for _, part := range []struct {
		name   string
		work   func()
		events string
	}{
		{"the life of pushes", func() { b.work(t, recipient, lane) }, "push.canceled 1, push.deferred 2, push.expired 1, push.failed 1, push.scheduled 8, push.sent 2"},
		{"a push that was moved to another week", func() { b.workMoved(t, recipient) }, "push.canceled 1, push.deferred 1, push.scheduled 5, push.sent 1"},
		{"a recipient whose lock is taken", func() { b.workContended(t, recipient) }, "push.scheduled 2"},
		{"a recipient with no free time for days", func() { b.workFull(t, recipient) }, "push.scheduled 2"},
		{"an Idempotency-Key", func() { b.workKeyed(t, recipient) }, "push.scheduled 2"},
		{"a batch", func() { b.workBatch(t, recipient) }, "push.scheduled 3"},
		{"lists", func() { b.workLists(t, recipient) }, ""},
		{"a retry", func() { b.workRetry(t, recipient) }, "push.failed 1, push.scheduled 2"},
		{"a campaign", func() { b.workCampaign(t, campaign, lane) }, "push.scheduled 2"},
		{"an opt-out", func() {
			if d := b.Say(t, booking.Description{Recipient: recipient, OptOuts: booking.OptOuts{All: true}}); d.Pushes == 0 {
				t.Errorf("%+v", d)
			}
		}, "push.canceled 11"},
		{"the erasure", func() {
			if _, err := b.Erase(t.Context(), quota.Recipient{Tenant: tenant, ID: recipient}); err != nil {
				t.Error(err)
			}
		}, ""},
	} {
		b.Exec(t, `DELETE FROM webhook_deliveries`)
		n := b.Counted(t, pg.Config{Lanes: push.Shards}, `SELECT coalesce(sum(seq_scan) + sum(idx_scan), 0)::int FROM pg_stat_user_tables WHERE relname ~ '_rest$'`, part.work)
		if n > 0 {
			t.Errorf("%s: %d scans of tables of other shards:\n%s", part.name, n, storetest.Ask[string](t, b.Watch, `SELECT string_agg(relname || ' ' || seq_scan + idx_scan, ', ') FROM pg_stat_user_tables WHERE relname ~ '_rest$' AND seq_scan + idx_scan > 0`))
		}
		events := storetest.Ask[string](t, b.Watch, `SELECT coalesce(string_agg(event || ' ' || n, ', ' ORDER BY event), '') FROM (SELECT event, count(*) AS n FROM webhook_deliveries GROUP BY 1) e`)
		if events != part.events {
			t.Errorf("%s: events: %s, want %s", part.name, events, part.events)
		}
	}
}

// work runs every operation on the pushes of one recipient.
func (b *bundle) work(t *testing.T, recipient string, lane push.Lane) {
	t.Helper()
	ahead := b.Booked(t, recipient, 3*time.Hour)
	far := b.Booked(t, recipient, 40*24*time.Hour)
	for _, to := range []time.Time{ahead.SendAt.Add(time.Minute), far.SendAt} { // within a week, and to another one
		moved := ahead
		moved.SendAt, moved.RequestedSendAt, moved.ExpiresAt = to, to, to.Add(time.Hour)
		if v, err := b.Reschedule(t.Context(), booking.Order{Drafts: []booking.Draft{{Push: moved}}}); err != nil || v.Outcome != booking.Booked {
			t.Fatalf("%+v, %v", v, err)
		}
	}
	if p, err := b.Cancel(t.Context(), b.TenantID, far.ID); err != nil || p.Status != push.Canceled {
		t.Fatalf("%+v, %v", p, err)
	}
	b.MustFinish(t, b.Claimed(t, b.Booked(t, recipient, 0)), storetest.Sent)
	again := b.Booked(t, recipient, 0)
	b.MustFinish(t, b.Claimed(t, again), storetest.TryAgain)
	b.MustFinish(t, b.Claimed(t, again), storetest.GaveUp)

	lost := b.Claimed(t, b.Booked(t, recipient, 0))
	b.Exec(t, `UPDATE live_one SET next_at = clock_timestamp() WHERE push_id = $1`, lost.Push.ID)
	found, err := b.Lost(t.Context(), []push.Lane{lane}, 10)
	if err != nil || len(found) != 1 {
		t.Fatalf("lost: %+v, %v", found, err)
	}
	if _, err := b.Finish(t.Context(), booking.Finish{Attempt: found[0].Attempt, Outcome: push.Unknown, Reaped: true, Resolution: storetest.LostTrack.Resolution}); err != nil {
		t.Fatal(err)
	}
	b.MustFinish(t, lost, storetest.Sent) // after all

	brief := storetest.Draft(b.TenantID, recipient, 0)
	brief.Push.TTL = time.Second
	storetest.MustBook(t, b.Store, nil, brief)
	storetest.Eventually(t, "it expires", func() bool {
		ended, err := b.Expire(t.Context(), []push.Lane{lane}, 10)
		return err == nil && len(ended) == 1
	})
	due := storetest.EveryDue(10)
	due.Lane = lane
	if _, _, err := b.Due(t.Context(), due); err != nil {
		t.Fatal(err)
	}
	b.MustAhead(t, lane, time.Time{}, time.Hour)

	r := quota.Recipient{Tenant: b.TenantID, ID: recipient}
	if _, _, _, err := b.BookingsBetween(t.Context(), r, storetest.ThreeRules, storetest.Began, storetest.Began.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.Bookings(t.Context(), r, storetest.Began, storetest.Began.Add(time.Hour), 10, true); err != nil {
		t.Fatal(err)
	}
	b.Say(t, booking.Description{Recipient: recipient, TimeZone: "Asia/Tokyo", OptOuts: booking.OptOuts{Channels: []string{"another"}}})
	if pushes, attempts, err := b.History(t.Context(), r, storetest.Began.Add(-time.Hour), storetest.Began.Add(time.Hour), 100); err != nil || len(pushes) == 0 || len(attempts) == 0 {
		t.Errorf("%+v, %+v, %v", pushes, attempts, err)
	}
	if of, err := b.CampaignsOf(t.Context(), b.TenantID, lane, []quota.Booking{booking.Of(&ahead), booking.Of(&lost.Push)}); err != nil || len(of) > 0 {
		t.Errorf("%v, %v", of, err)
	}
	if p := b.MustRead(t, lost.Push); p.Status != push.Sent || len(p.Sends) != 1 {
		t.Errorf("%+v", p)
	}
}

// moved moves a push to a time that must be free.
func (b *bundle) moved(t *testing.T, p push.Push, to time.Time) push.Push {
	t.Helper()
	p.SendAt, p.RequestedSendAt, p.ExpiresAt = to, to, to.Add(time.Hour)
	v, err := b.Reschedule(t.Context(), booking.Order{Drafts: []booking.Draft{{Push: p}}})
	if err != nil || v.Outcome != booking.Booked {
		t.Fatalf("%+v, %v", v, err)
	}
	return v.Push
}

// workMoved reads, moves, sends and cancels pushes with an id that names another week than the send time.
func (b *bundle) workMoved(t *testing.T, recipient string) {
	t.Helper()
	p := b.moved(t, b.Booked(t, recipient, 3*time.Hour), storetest.Began.Add(40*24*time.Hour))
	b.WantStatus(t, p, push.Scheduled)
	b.moved(t, p, storetest.Began.Add(41*24*time.Hour))
	b.MustCancel(t, p)
	b.WantStatus(t, p, push.Canceled)

	p = b.moved(t, b.Booked(t, recipient, 40*24*time.Hour), storetest.Began)
	b.MustFinish(t, b.Claimed(t, p), storetest.TryAgain)
	b.MustFinish(t, b.Claimed(t, p), storetest.Sent) // the end of a second attempt reads the first one
	if p := b.MustRead(t, p); p.Status != push.Sent || len(p.Sends) != 2 {
		t.Errorf("%+v", p)
	}
}

// workContended books pushes while another transaction has the lock of their recipient.
func (b *bundle) workContended(t *testing.T, recipient string) {
	t.Helper()
	tx, err := b.DB.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(context.Background())
	if _, err := tx.Exec(t.Context(), `SELECT pg_advisory_xact_lock($1)`, push.RecipientKey(b.TenantID, recipient)); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range 2 {
		all.Go(func() {
			v, err := b.Book(t.Context(), booking.Order{Drafts: []booking.Draft{storetest.Draft(b.TenantID, recipient, time.Duration(5+i)*time.Hour)}})
			if err != nil || v[0].Outcome != booking.Booked {
				t.Errorf("%+v, %v", v, err)
			}
		})
	}
	b.Waiting(t, 1)
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	all.Wait()
}

// workFull books a push that only fits beyond the bookings that are read at first.
func (b *bundle) workFull(t *testing.T, recipient string) {
	t.Helper()
	policy := quota.Policy{{Name: "month", Limit: 1, Window: 30 * 24 * time.Hour}}
	full := b.Booked(t, recipient, 200*24*time.Hour)
	d := storetest.Draft(b.TenantID, recipient, 200*24*time.Hour)
	d.Latest = full.SendAt.Add(60 * 24 * time.Hour)
	if v := storetest.MustBook(t, b.Store, policy, d); v.Outcome != booking.Booked || push.WeekOf(d.Push.ID).Equal(push.WeekOf(push.NewID(v.Push.SendAt, 0))) {
		t.Errorf("%+v", v)
	} else {
		b.WantStatus(t, v.Push, push.Scheduled)
	}
}

// workKeyed books a push under an Idempotency-Key, moves it to another week, and repeats the request.
func (b *bundle) workKeyed(t *testing.T, recipient string) {
	t.Helper()
	for _, want := range []booking.Outcome{booking.Booked, booking.Replayed} {
		d := storetest.MustKeyed(b.TenantID, recipient, "key", "body", 7*time.Hour)
		v := storetest.MustBook(t, b.Store, nil, d)
		if v.Outcome != want || v.Push.Recipient != recipient {
			t.Errorf("%+v", v)
		}
		if want == booking.Booked {
			b.moved(t, v.Push, storetest.Began.Add(50*24*time.Hour))
		}
	}
}

// workBatch books several pushes of a recipient together.
func (b *bundle) workBatch(t *testing.T, recipient string) {
	t.Helper()
	o := booking.Order{}
	for i := range 3 {
		o.Drafts = append(o.Drafts, storetest.Draft(b.TenantID, recipient, time.Duration(10+i)*time.Hour))
	}
	if v, err := b.Book(t.Context(), o); err != nil || storetest.Outcomes(v)[booking.Booked] != 3 {
		t.Errorf("%+v, %v", v, err)
	}
}

// workLists lists the pushes and attempts of a recipient, whole and by filters.
func (b *bundle) workLists(t *testing.T, recipient string) {
	t.Helper()
	for _, f := range []push.Filter{{}, {Channel: "log"}, {Status: push.Scheduled}, {Status: push.Sending}, {Status: push.Sent}, {Status: push.Failed, Reason: "bad"}} {
		f.Recipient, f.From = recipient, storetest.Began.Add(-time.Hour)
		if page, err := b.List(t.Context(), b.TenantID, f, push.Position{}, 100); err != nil || len(page.Pushes) == 0 && f.Status != push.Sending {
			t.Errorf("%+v: %+v, %v", f, page, err)
		}
	}
	if page, err := b.Sends(t.Context(), b.TenantID, record.SendFilter{Recipient: recipient, From: storetest.Began.Add(-time.Hour)}, record.SendPosition{}, 100); err != nil || len(page.Sends) == 0 {
		t.Errorf("%+v, %v", page, err)
	}
}

// workRetry retries a push that failed.
func (b *bundle) workRetry(t *testing.T, recipient string) {
	t.Helper()
	p := b.Booked(t, recipient, 0)
	b.MustFinish(t, b.Claimed(t, p), storetest.GaveUp)
	if v := storetest.MustBook(t, b.Store, nil, storetest.RetryOf(p, uuid.Nil, 20*time.Hour)); v.Outcome != booking.Booked || b.MustRead(t, p).Retry.Latest != v.Push.ID {
		t.Errorf("%+v", v)
	}
}

// workCampaign books the push of a campaign, moves it to another week, and reads its outcome.
func (b *bundle) workCampaign(t *testing.T, c broadcast.Campaign, lane push.Lane) {
	t.Helper()
	o := storetest.ChunkOf(c, nil)
	o.Shards, o.After = lane, campaigns.BeforeShards(lane)
	done, err := o.Decide(t.Context(), b.CampaignChunk)
	if err != nil || len(done.Decided) != 1 {
		t.Fatalf("%+v, %v", done, err)
	}
	for _, to := range []time.Time{c.SendAt, c.SendAt.Add(30 * 24 * time.Hour)} {
		p := b.MustRead(t, done.Decided[0].Draft.Push)
		if !p.SendAt.Equal(to) {
			p = b.moved(t, p, to)
		}
		page, err := b.CampaignRecipients(t.Context(), b.TenantID, c.ID, broadcast.RecipientFilter{}, 0, 10)
		if err != nil || len(page.Recipients) != 1 || !page.Recipients[0].SendAt.Equal(p.SendAt) {
			t.Errorf("%+v, %v", page, err)
		}
	}
}

// TestPush_OtherWeek checks that a push can be read, moved, sent and canceled if its id names another week than its
// send time, as after a move.
func TestPush_OtherWeek(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, lanes := range []int{1, push.Shards} {
		b.Close()
		b.Store = storetest.OpenURL(t, b.URL, pg.Config{Lanes: lanes})
		for i := range 2 {
			recipient := fmt.Sprint("user-", lanes, i)
			d := storetest.Draft(b.TenantID, recipient, 0)
			d.Push.ID = push.NewID(storetest.Began.Add(40*24*time.Hour), push.RecipientKey(b.TenantID, recipient))
			p := storetest.MustBook(t, b.Store, nil, d).Push
			b.WantStatus(t, p, push.Scheduled)
			if i == 0 {
				b.MustFinish(t, b.Claimed(t, p), storetest.TryAgain)
				b.MustFinish(t, b.Claimed(t, p), storetest.Sent)
				b.WantStatus(t, p, push.Sent)
				continue
			}
			p = b.moved(t, p, storetest.Began.Add(20*24*time.Hour))
			b.MustCancel(t, p)
			b.WantStatus(t, p, push.Canceled)
		}
	}
}
