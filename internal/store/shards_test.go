package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/store"
)

// setupShards is a bundle whose tables are divided by shard once more: what belongs to one shard is apart from all else. Where
// the shards are on different servers, a statement that looks into the rest would ask other servers.
func setupShards(t *testing.T, shard int) *bundle {
	t.Helper()
	b := setup(t)
	b.exec(t, fmt.Sprintf(`
		ALTER TABLE live RENAME TO whole;
		ALTER TABLE whole DROP CONSTRAINT live_pkey;
		DROP INDEX live_lane, live_list;
		CREATE TABLE live (LIKE whole INCLUDING ALL) PARTITION BY LIST (shard);
		CREATE TABLE live_one PARTITION OF live FOR VALUES IN (%[1]d);
		CREATE TABLE live_rest PARTITION OF live DEFAULT;
		ALTER TABLE live ADD PRIMARY KEY (recipient_key, send_at, push_id, shard);
		CREATE INDEX live_lane ON live (channel, phase, next_at, (recipient_key & 255), (recipient_key >> 8));
		ALTER TABLE pushes DROP CONSTRAINT pushes_pkey;
		ALTER TABLE sends DROP CONSTRAINT sends_pkey;
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
		END $$;
		ALTER TABLE pushes ADD PRIMARY KEY (id, send_at, shard);
		ALTER TABLE sends ADD PRIMARY KEY (push_id, attempt, started_at, shard)`, shard))
	b.Close()
	b.Store = openURL(t, b.url, store.Config{Lanes: push.Shards})
	return b
}

// TestStore_OneShard: where each shard is a lane, no statement about a push looks at rows of other shards, nor does a trigger of
// the tables run. What counts or lists a tenant's pushes goes through all of them.
func TestStore_OneShard(t *testing.T) {
	t.Parallel()
	const recipient = "anna"
	tenant := uuid.MustParse("0c6c6a4f-3f5e-4a44-9a77-2a6a7ff0a5a1")
	key := push.RecipientKey(tenant, recipient)
	b := setupShards(t, push.Shard(key))
	b.tenant = tenant
	b.exec(t, `INSERT INTO tenants (id, name) VALUES ($1, 'one shard')`, tenant)
	b.exec(t, `INSERT INTO webhooks (id, tenant_id, url, events, secret) VALUES (gen_random_uuid(), $1, 'https://example.com', $2, 's')`, tenant, push.Events)
	lane := push.Lane{First: push.Shard(key), Last: push.Shard(key)}
	elsewhere := func() int {
		return b.counted(t, store.Config{Lanes: push.Shards}, `SELECT coalesce(sum(seq_scan) + sum(idx_scan), 0)::int FROM pg_stat_user_tables WHERE relname ~ '_rest$'`, func() {
			b.work(t, recipient, lane)
		})
	}
	// In the end the recipient is erased.
	defer func() {
		n := b.counted(t, store.Config{Lanes: push.Shards}, `SELECT coalesce(sum(seq_scan) + sum(idx_scan), 0)::int FROM pg_stat_user_tables WHERE relname ~ '_rest$'`, func() {
			if _, err := b.Erase(t.Context(), quota.Recipient{Tenant: tenant, ID: recipient}); err != nil {
				t.Error(err)
			}
		})
		if n > 0 {
			t.Errorf("the erasure looks %d times at tables of other shards", n)
		}
	}()
	b.exec(t, `ALTER TABLE pushes DISABLE TRIGGER tell_booked; ALTER TABLE pushes DISABLE TRIGGER tell_changed`)
	if n := elsewhere(); n > 0 {
		t.Errorf("%d looks at tables of other shards:\n%s", n, ask[string](t, b.watch, `SELECT string_agg(relname || ' ' || seq_scan + idx_scan, ', ') FROM pg_stat_user_tables WHERE relname ~ '_rest$' AND seq_scan + idx_scan > 0`))
	}
	events := ask[string](t, b.watch, `SELECT string_agg(event || ' ' || n, ', ' ORDER BY event) FROM (SELECT event, count(*) AS n FROM webhook_deliveries GROUP BY 1) e`)
	if want := "push.canceled 1, push.deferred 2, push.expired 1, push.failed 1, push.scheduled 8, push.sent 2"; events != want {
		t.Errorf("events: %s, want %s", events, want)
	}
}

// work does everything that is done to the pushes of one recipient.
func (b *bundle) work(t *testing.T, recipient string, lane push.Lane) {
	t.Helper()
	ahead := b.booked(t, recipient, 3*time.Hour)
	far := b.booked(t, recipient, 40*24*time.Hour)
	for _, to := range []time.Time{ahead.SendAt.Add(time.Minute), far.SendAt} { // within a week, and across
		moved := ahead
		moved.SendAt, moved.RequestedSendAt, moved.ExpiresAt = to, to, to.Add(time.Hour)
		if v, err := b.Reschedule(t.Context(), booking.Order{Drafts: []booking.Draft{{Push: moved}}}); err != nil || v.Outcome != booking.Booked {
			t.Fatalf("%+v, %v", v, err)
		}
	}
	if p, err := b.Cancel(t.Context(), b.tenant, far.ID); err != nil || p.Status != push.Canceled {
		t.Fatalf("%+v, %v", p, err)
	}
	b.finish(t, b.claimed(t, b.booked(t, recipient, 0)), sent)
	again := b.booked(t, recipient, 0)
	b.finish(t, b.claimed(t, again), tryAgain)
	b.finish(t, b.claimed(t, again), gaveUp)

	lost := b.claimed(t, b.booked(t, recipient, 0))
	b.exec(t, `UPDATE live_one SET next_at = clock_timestamp() WHERE push_id = $1`, lost.Push.ID)
	found, err := b.Lost(t.Context(), []push.Lane{lane}, 10)
	if err != nil || len(found) != 1 {
		t.Fatalf("lost: %+v, %v", found, err)
	}
	if _, err := b.Finish(t.Context(), booking.Finish{Attempt: found[0].Attempt, Outcome: push.Unknown, Reaped: true, Resolution: lostTrack.Resolution}); err != nil {
		t.Fatal(err)
	}
	b.finish(t, lost, sent) // after all

	brief := draft(b.tenant, recipient, 0)
	brief.Push.TTL = time.Second
	book(t, b.Store, nil, brief)
	eventually(t, "it expires", func() bool {
		ended, err := b.Expire(t.Context(), []push.Lane{lane}, 10)
		return err == nil && len(ended) == 1
	})
	due := everyDue(10)
	due.Lane = lane
	if _, _, err := b.Due(t.Context(), due); err != nil {
		t.Fatal(err)
	}
	b.ahead(t, lane, time.Time{}, time.Hour)

	r := quota.Recipient{Tenant: b.tenant, ID: recipient}
	if _, _, _, err := b.Glance(t.Context(), r, threeRules, began, began.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := b.Bookings(t.Context(), r, began, began.Add(time.Hour), 10, true); err != nil {
		t.Fatal(err)
	}
	b.say(t, booking.Description{Recipient: recipient, TimeZone: "Asia/Tokyo", OptOuts: booking.OptOuts{Channels: []string{"another"}}})
	if pushes, attempts, err := b.History(t.Context(), r, began.Add(-time.Hour), began.Add(time.Hour), 100); err != nil || len(pushes) == 0 || len(attempts) == 0 {
		t.Errorf("%+v, %+v, %v", pushes, attempts, err)
	}
	if of, err := b.CampaignsOf(t.Context(), b.tenant, lane, []quota.Booking{booking.Of(&ahead), booking.Of(&lost.Push)}); err != nil || len(of) > 0 {
		t.Errorf("%v, %v", of, err)
	}
	if p := b.read(t, lost.Push); p.Status != push.Sent || len(p.Sends) != 1 {
		t.Errorf("%+v", p)
	}
}
