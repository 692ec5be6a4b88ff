package pg_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/record"
	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/internal/store/pg"
	"github.com/sendquota/sendquota/internal/store/storetest"
	"github.com/sendquota/sendquota/internal/testenv"
)

// TestStore_RowsRead checks that no statement reads more than a few rows among 4,000: pushes ahead and past sends of
// one recipient, and pushes of other recipients. The statement for due pushes runs every second.
func TestStore_RowsRead(t *testing.T) {
	t.Parallel()
	b := setupNew(t)
	for _, recipient := range []string{`'anna'`, `'r' || i`} {
		b.Exec(t, `INSERT INTO pushes (id, tenant_id, recipient_key, recipient, channel, message, requested_send_at, send_at, next_at, expires_at)
			SELECT gen_random_uuid(), $1, $2, `+recipient+`, 'log', '{}', s, s, s, s + interval '1 day'
			FROM generate_series(1, 1000) i, LATERAL (SELECT $3::timestamptz + interval '3 days' + i * interval '1 minute' AS s) s`,
			b.TenantID, push.RecipientKey(b.TenantID, "anna"), storetest.Began)
	}
	b.Exec(t, `UPDATE pushes SET recipient_key = hashtext(recipient) WHERE recipient <> 'anna'`)
	b.Exec(t, `INSERT INTO pushes (id, tenant_id, recipient_key, recipient, channel, message, requested_send_at, send_at, next_at, expires_at, status)
		SELECT gen_random_uuid(), $1, -i, 's' || i, 'log', '{}', s, s, s, s + interval '1 day', 'sent'
		FROM generate_series(1, 1000) i, LATERAL (SELECT $2::timestamptz - interval '2 days' - i * interval '1 minute' AS s) s`, b.TenantID, storetest.Began)
	b.Parts(t, 48*time.Hour, 72*time.Hour)
	// A third of them are on the second of two days, at any hour of the test, because plans depend on that.
	last := storetest.Began.UTC().Truncate(24 * time.Hour).Add(-48*time.Hour + 330*time.Minute)
	b.Exec(t, `INSERT INTO sends (push_id, attempt, tenant_id, recipient_key, recipient, channel, started_at, lease_until, ended_at, outcome)
		SELECT gen_random_uuid(), 1, $1, $2, 'anna', 'log', s, s, s, 'delivered'
		FROM generate_series(1, 1000) i, LATERAL (SELECT $3::timestamptz - i * interval '1 minute' AS s) s`,
		b.TenantID, push.RecipientKey(b.TenantID, "anna"), last)
	b.Booked(t, "anna", 0)
	b.Exec(t, `VACUUM ANALYZE`) // so that no statement below reads old versions of rows
	for _, row := range []struct {
		name string
		work func(t *testing.T)
	}{
		{"due", func(t *testing.T) { b.WantDue(t, storetest.EveryDue(500), 1) }},
		{"ahead", func(t *testing.T) { b.MustAhead(t, push.Lanes(1)[0], time.Time{}, time.Hour) }},
		{"overdue", func(t *testing.T) { _, _ = b.Overdue(t.Context()) }},
		{"expire", func(t *testing.T) { _, _ = b.Expire(t.Context(), push.Lanes(1), 500) }},
		{"backlog", func(t *testing.T) { _, _, _ = b.Backlog(t.Context()) }},
		{"lost", func(t *testing.T) { _, _ = b.Lost(t.Context(), push.Lanes(1), 500) }},
		{"bookings", func(t *testing.T) {
			_, _, _ = b.Bookings(t.Context(), quota.Recipient{Tenant: b.TenantID, ID: "anna"}, storetest.Began, storetest.Began.Add(24*time.Hour), booking.MaxRead, false)
		}},
		{"pending", func(t *testing.T) {
			if n, err := b.Pending(t.Context(), b.TenantID, 21); err != nil || n != 21 {
				t.Errorf("%d pending, %v", n, err)
			}
		}},
		{"sends", func(t *testing.T) { b.sendsRead(t, record.SendFilter{From: last.Add(-2 * time.Hour)}) }},
		{"sends of a recipient", func(t *testing.T) { b.sendsRead(t, record.SendFilter{Recipient: "anna"}) }},
		{"pending of another", func(t *testing.T) {
			if n, err := b.Pending(t.Context(), uuid.New(), 21); err != nil || n != 0 {
				t.Errorf("%d pending, %v", n, err)
			}
		}},
		{"recipients", func(t *testing.T) {
			if n, err := b.Recipients(t.Context(), b.TenantID, booking.DayOf(storetest.Began), 21); err != nil || n != 1 {
				t.Errorf("%d recipients, %v", n, err)
			}
		}},
		{"claim", func(t *testing.T) { b.MustClaim(t, "anna", storetest.ThreeRules) }},
		{"book", func(t *testing.T) {
			storetest.MustBook(t, b.Store, storetest.ThreeRules, storetest.Draft(b.TenantID, "anna", time.Hour))
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			if n := b.RowsRead(t, store.Config{}, func() { row.work(t) }); n > 100 {
				t.Errorf("%d rows were read", n)
			}
		})
	}
}

// TestList_BeginsAtFrom checks that a list from a time on skips earlier pushes, in the index, too. Postgres does not
// count rows that it skips in the index as read; it does count the pages.
func TestList_BeginsAtFrom(t *testing.T) {
	t.Parallel()
	b := setupNew(t)
	b.ForgeMany(t, `INSERT INTO pushes (id, tenant_id, shard, recipient_key, recipient, channel, message, requested_send_at, send_at, next_at, expires_at, status)
		SELECT gen_random_uuid(), $1, i & 255, i, 'r' || i, 'log', '{}', s, s, s, s + interval '1 day', 'sent'
		FROM generate_series(1, 20000) i, LATERAL (SELECT $2::timestamptz + i * interval '1 second' AS s) s`, b.TenantID, storetest.Began)
	b.Exec(t, `VACUUM ANALYZE pushes`)
	list := func() {
		page, err := b.List(t.Context(), b.TenantID, push.Filter{From: storetest.Began.Add(19_990 * time.Second)}, push.Position{}, 50)
		if err != nil || len(page.Pushes) != 11 {
			t.Errorf("%d pushes, %v", len(page.Pushes), err)
		}
	}
	const pages = `SELECT (sum(idx_blks_read) + sum(idx_blks_hit))::bigint FROM pg_statio_user_indexes WHERE indexrelname ~ 'tenant' AND relname ~ '^pushes'`
	planned := b.Counted(t, store.Config{}, pages, list) // planning reads each index once
	n := b.Counted(t, store.Config{}, pages, func() {
		list()
		list()
	}) - planned
	if tables := storetest.Ask[int](t, b.DB, `SELECT count(*) FROM pg_partition_tree('pushes') WHERE isleaf`); n > 20+3*tables {
		t.Errorf("%d pages of the index were read", n)
	}
}

// TestList_ReadsFew checks that a list with a filter that many pushes match reads few of them.
func TestList_ReadsFew(t *testing.T) {
	t.Parallel()
	b := setupNew(t)
	b.ForgeMany(t, `INSERT INTO pushes (id, tenant_id, shard, recipient_key, recipient, channel, message, requested_send_at, send_at, next_at, expires_at, status)
		SELECT gen_random_uuid(), $1, i & 255, i, 'r' || i, CASE i % 5 WHEN 0 THEN 'sms' ELSE 'log' END, '{}', s, s, s, s + interval '1 day', 'sent'
		FROM generate_series(1, 20000) i, LATERAL (SELECT $2::timestamptz + i * interval '1 second' AS s) s`, b.TenantID, storetest.Began)
	b.Exec(t, `VACUUM ANALYZE pushes`)
	list := func() {
		page, err := b.List(t.Context(), b.TenantID, push.Filter{Channel: "sms", Status: push.Sent}, push.Position{}, 50)
		if err != nil || len(page.Pushes) != 50 || page.Next == nil {
			t.Errorf("%d pushes, %v", len(page.Pushes), err)
		}
	}
	if n := b.RowsRead(t, store.Config{}, list); n > 1000 {
		t.Errorf("%d rows were read", n)
	}
}

// TestList_FullLastPage checks that a page that holds all matches is the last one, although other pushes follow it.
func TestList_FullLastPage(t *testing.T) {
	t.Parallel()
	b := setupNew(t)
	b.Exec(t, `INSERT INTO pushes (id, tenant_id, recipient_key, recipient, channel, message, requested_send_at, send_at, next_at, expires_at, status)
		SELECT gen_random_uuid(), $1, i, 'r' || i, CASE WHEN i < 3 THEN 'sms' ELSE 'log' END, '{}', s, s, s, s + interval '1 day', 'sent'
		FROM generate_series(1, 100) i, LATERAL (SELECT $2::timestamptz + i * interval '1 second' AS s) s`, b.TenantID, storetest.Began)
	page, err := b.List(t.Context(), b.TenantID, push.Filter{Channel: "sms"}, push.Position{}, 2)
	if err != nil || len(page.Pushes) != 2 || page.Next != nil {
		t.Errorf("%d pushes, next %v, %v", len(page.Pushes), page.Next, err)
	}
}

// TestList_ReadsInOneTable checks that a list reads each push in the table where it found it, or in the table of its
// week. Of pushes over five weeks, none is read by its id more than once. In live, the list reads only the push that is
// due.
func TestList_ReadsInOneTable(t *testing.T) {
	t.Parallel()
	b := setupNew(t)
	o := booking.Order{}
	for i := range 100 {
		d := storetest.Draft(b.TenantID, fmt.Sprint("r", i%10), time.Duration(i)*8*time.Hour)
		d.Push.Category = "news"
		o.Drafts = append(o.Drafts, d)
	}
	if _, err := b.Book(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	b.Exec(t, `ANALYZE`)
	for name, row := range map[string]struct {
		push.Filter
		pushes, looks int // on the page, and index scans by id at most
	}{
		"all":                     {push.Filter{}, 50, 1},
		"of a recipient":          {push.Filter{Recipient: "r7"}, 10, 0},
		"of a channel":            {push.Filter{Channel: "log"}, 50, 51 + 1},
		"scheduled":               {push.Filter{Status: push.Scheduled}, 50, 51 + 1},
		"scheduled of a category": {push.Filter{Status: push.Scheduled, Category: "news"}, 50, 51 + 100 + 1},
	} {
		t.Run(name, func(t *testing.T) {
			n := b.Counted(t, store.Config{}, `SELECT coalesce(sum(idx_scan), 0)::int FROM pg_stat_user_indexes WHERE indexrelname ~ '^(pushes_\d+|live)_pkey'`, func() {
				page, err := b.List(t.Context(), b.TenantID, row.Filter, push.Position{}, 50)
				if err != nil || len(page.Pushes) != row.pushes {
					t.Errorf("%d pushes, want %d, %v", len(page.Pushes), row.pushes, err)
				}
			})
			if n > row.looks {
				t.Errorf("%d looks by ids, want %d at most", n, row.looks)
			}
		})
	}
}

// TestStore_RowsReadInBacklog checks that statements read about as many rows as they return in a backlog, with
// statistics from a quiet hour, from an empty table, from the moment after an earlier backlog, or from the backlog.
func TestStore_RowsReadInBacklog(t *testing.T) {
	t.Parallel()
	whole := push.Lanes(1)[0]
	some := storetest.EveryDue(50)
	some.Channels = append(some.Channels, booking.DueChannel{Name: "sms", Most: 50}, booking.DueChannel{Name: "mail", Most: 50})
	lane := some
	lane.Lane = push.Lane{First: 64, Last: 127}
	works := map[string]struct {
		work func(t *testing.T, b *bundle)
		most int
	}{
		"due":         {func(t *testing.T, b *bundle) { b.WantDue(t, some, 50) }, 50*4 + 20},
		"due, a lane": {func(t *testing.T, b *bundle) { b.WantDue(t, lane, 50) }, 50*4 + 20},
		"overdue":     {func(t *testing.T, b *bundle) { _, _ = b.Overdue(t.Context()) }, 20},
		"ahead": {func(t *testing.T, b *bundle) {
			if a := b.MustAhead(t, whole, time.Time{}, time.Hour); len(a.Moments) != 1 || a.Moments[0].Pushes != 100 {
				t.Errorf("%+v", a)
			}
		}, 100 + 20},
		"backlog": {func(t *testing.T, b *bundle) {
			if n, _, err := b.Backlog(t.Context()); n != 8000 || err != nil {
				t.Errorf("%d, %v", n, err)
			}
		}, 8000 + 20},
		"claim and finish": {func(t *testing.T, b *bundle) { b.MustFinish(t, b.Claimed(t, b.Booked(t, "anna", 0)), storetest.Sent) }, 60},
		"expire": {func(t *testing.T, b *bundle) {
			if ended, err := b.Expire(t.Context(), []push.Lane{whole}, 500); len(ended) != 0 || err != nil {
				t.Errorf("%d, %v", len(ended), err)
			}
		}, 8000 + 20},
	}
	quiet := func(b *bundle) {
		b.Forge(t, 3000, "log", false, 48*time.Hour)
		b.Exec(t, `UPDATE pushes SET status = 'sent'`)
		b.Exec(t, `VACUUM ANALYZE pushes, live`)
	}
	drained := func(b *bundle) {
		b.Forge(t, 20_000, "log", false, 48*time.Hour)
		b.Exec(t, `UPDATE pushes SET status = 'sent'`)
		b.Exec(t, `UPDATE live SET phase = 6, token = gen_random_uuid(), started_at = send_at WHERE recipient_key % 2 = 0`)
		b.Exec(t, `ANALYZE live`) // autovacuum does so in the middle
		b.Exec(t, `DELETE FROM live`)
		b.Exec(t, `VACUUM ANALYZE pushes, live`)
	}
	empty := func(b *bundle) { b.Exec(t, `ANALYZE pushes, live`) }
	for name, before := range map[string]func(b *bundle){"quiet": quiet, "drained": drained, "empty": empty, "backlog": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setupNew(t)
			b.Exec(t, `DO $$ DECLARE t regclass; BEGIN
				FOR t IN SELECT relid FROM pg_partition_tree('pushes') WHERE isleaf UNION SELECT 'pushes'::regclass WHERE NOT EXISTS (SELECT FROM pg_partition_tree('pushes')) LOOP
					EXECUTE format('ALTER TABLE %s SET (autovacuum_enabled = off)', t);
				END LOOP;
			END $$`)
			b.Exec(t, `ALTER TABLE live SET (autovacuum_enabled = off)`)
			if before != nil {
				before(b)
			}
			for _, channel := range []string{"log", "sms", "fax"} {
				b.Forge(t, 2000, channel, false, time.Minute)
			}
			b.Forge(t, 2000, "log", true, time.Hour)
			b.Forge(t, 4000, "log", false, -3*time.Hour)
			b.Forge(t, 100, "sms", true, -30*time.Minute)
			if before == nil {
				b.Exec(t, `ANALYZE pushes, live`)
			}
			for name, w := range works {
				n := b.RowsRead(t, pg.Config{Channels: []string{"log", "sms"}}, func() { w.work(t, b) })
				if n > w.most {
					t.Errorf("%s: %d rows were read, at most %d are needed", name, n, w.most)
				}
			}
		})
	}
}

// sendsRead reads two pages of attempts.
func (b *bundle) sendsRead(t *testing.T, f record.SendFilter) {
	t.Helper()
	page, err := b.Sends(t.Context(), b.TenantID, f, record.SendPosition{}, 5)
	if err == nil && page.Next != nil {
		_, err = b.Sends(t.Context(), b.TenantID, f, *page.Next, 5)
	}
	if err != nil || len(page.Sends) == 0 {
		t.Errorf("%d attempts, %v", len(page.Sends), err)
	}
}

// TestStore_WritesInLife checks that usually a push is written twice and its attempt once, and that its row in live is
// inserted, claimed and removed.
func TestStore_WritesInLife(t *testing.T) {
	t.Parallel()
	b := setupNew(t)
	const writes = `SELECT sum(n_tup_ins)::int * 100 + sum(n_tup_upd)::int * 10 + sum(n_tup_del)::int FROM pg_stat_user_tables WHERE relname ~ `
	for table, want := range map[string]int{"^pushes_": 110, "^sends_": 100, "^live$": 111} {
		if n := b.Counted(t, store.Config{}, writes+`'`+table+`'`, func() { b.MustFinish(t, b.Claimed(t, b.Booked(t, "life of "+table, 0)), storetest.Sent) }); n != want {
			t.Errorf("%s: %03d inserts, updates and deletes, want %03d", table, n, want)
		}
		b.Store = storetest.OpenURL(t, b.URL, store.Config{})
	}
}

// TestOpen_PoolSizes checks that the pools have the sizes of the settings.
func TestOpen_PoolSizes(t *testing.T) {
	t.Parallel()
	url := testenv.Postgres(t)
	for cfg, want := range map[[2]int][2]int32{{0, 0}: {16, 8}, {9, 3}: {9, 3}, {1000, 1}: {1000, 1}} {
		st := storetest.OpenURL(t, url, pg.Config{MaxConns: cfg[0], ReadConns: cfg[1]})
		if got := [2]int32{st.Pool.Config().MaxConns, st.ReadPool.Config().MaxConns}; got != want {
			t.Errorf("%v: %v, want %v", cfg, got, want)
		}
	}
}
