package pushes_test

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store/storetest"
)

// TestList_Filters filters a handful of pushes that differ in one field each.
func TestList_Filters(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, d := range []struct{ id, recipient, channel, category string }{
		{"a", "anna", "log", ""}, {"b", "bert", "log", ""}, {"c", "anna", "sms", ""}, {"d", "anna", "log", "marketing"},
	} {
		at := storetest.Draft(b.TenantID, d.recipient, time.Duration(d.id[0]-'a'+1)*time.Hour)
		at.Push.Channel, at.Push.Category, at.Push.To = d.channel, d.category, d.id
		storetest.MustBook(t, b.Store, nil, at)
	}
	ended := storetest.Draft(b.TenantID, "anna", 5*time.Hour)
	ended.Push.To = "e"
	storetest.MustBook(t, b.Store, nil, ended)
	if _, err := b.Cancel(t.Context(), b.TenantID, ended.Push.ID); err != nil {
		t.Fatal(err)
	}
	storetest.MustBook(t, b.Store, nil, storetest.Draft(uuid.New(), "anna", time.Hour)) // another tenant's

	for want, f := range map[string]push.Filter{
		"a b c d e": {},
		"a c d e":   {Recipient: "anna"},
		"a b d e":   {Channel: "log"},
		"d":         {Category: "marketing"},
		"e":         {Status: push.Canceled},
		"a c d":     {Recipient: "anna", Status: push.Scheduled},
		"a d e":     {Recipient: "anna", Channel: "log"},
		"b c d":     {From: storetest.Began.Add(2 * time.Hour), Until: storetest.Began.Add(5 * time.Hour)},
		"c d":       {Recipient: "anna", From: storetest.Began.Add(2 * time.Hour), Until: storetest.Began.Add(5 * time.Hour)},
		"":          {Recipient: "unknown"},
	} {
		list, err := b.List(t.Context(), b.TenantID, f, push.Position{}, 10)
		var got []string
		for _, p := range list.Pushes {
			got = append(got, p.To)
		}
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%+v: %v, want %s (%v)", f, got, want, err)
		}
	}
}

// TestList_Pages checks that the pages list every push once, by send time and id, although many pushes share a time.
func TestList_Pages(t *testing.T) {
	t.Parallel()
	b := setup(t)
	o := booking.Order{}
	for range 100 {
		o.Drafts = append(o.Drafts, storetest.Draft(b.TenantID, uuid.NewString(), time.Duration(rand.N(5))*time.Second))
	}
	if _, err := b.Book(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	all, _ := b.ListAll(t, push.Filter{}, 7)
	if len(all) != 100 || !slices.IsSortedFunc(all, inListOrder) {
		t.Errorf("%d pushes, or out of order", len(all))
	}
}

// TestList_EndsPagesAtAMebibyte lists twenty pushes of 100 KB. A page has ten or eleven of them whatever its maximum,
// and no push is left out. A push that is larger than a page has a page of its own.
func TestList_EndsPagesAtAMebibyte(t *testing.T) {
	t.Parallel()
	b := setup(t)
	large := func(bytes int) []byte { return []byte(`{"body":"` + strings.Repeat("x", bytes) + `"}`) }
	for i := range 20 {
		d := storetest.Draft(b.TenantID, uuid.NewString(), time.Duration(i)*time.Second)
		d.Push.Message, d.Push.Metadata = large(50_000), large(50_000)
		storetest.MustBook(t, b.Store, nil, d)
	}
	first, err := b.List(t.Context(), b.TenantID, push.Filter{}, push.Position{}, 500)
	if n := len(first.Pushes); err != nil || n < 10 || n > 12 || first.Next == nil {
		t.Errorf("the first page has %d pushes, %v", n, err)
	}
	huge := storetest.Draft(b.TenantID, uuid.NewString(), 10*time.Second)
	huge.Push.Message = large(3 << 20)
	storetest.MustBook(t, b.Store, nil, huge)
	if all, pages := b.ListAll(t, push.Filter{}, 500); len(all) != 21 || pages < 3 {
		t.Errorf("%d pushes on %d pages", len(all), pages)
	}
}

// TestList_BoundsItsScan lists 25,100 pushes by filters that three pushes match. The pages on the way are empty, but do
// not end the list. The list of failed pushes does not read the others.
func TestList_BoundsItsScan(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	b.ForgeMany(t, `INSERT INTO pushes (id, tenant_id, shard, recipient_key, recipient, channel, category, message, requested_send_at, send_at, next_at, expires_at, status, freed)
		SELECT gen_random_uuid(), $1, i & 255, i, 'r' || i, CASE i % 12000 WHEN 1000 THEN 'sms' ELSE 'log' END, CASE i % 12000 WHEN 1001 THEN 'rare' ELSE '' END, '{}', s, s, s, s + interval '1 day',
			CASE i % 12000 WHEN 1002 THEN 'failed' ELSE 'sent' END, i % 12000 = 1002
		FROM generate_series(1, 25100) i, LATERAL (SELECT $2::timestamptz + i / 10 * interval '1 second' AS s) s`, b.TenantID, storetest.Began)
	for name, want := range map[string]struct {
		push.Filter
		pages int
	}{"channel": {push.Filter{Channel: "sms"}, 3}, "category": {push.Filter{Category: "rare"}, 3}, "status": {push.Filter{Status: push.Failed}, 1}} {
		all, pages := b.ListAll(t, want.Filter, 50)
		if len(all) != 3 || pages != want.pages {
			t.Errorf("%s: %d pushes on %d pages", name, len(all), pages)
		}
	}
	if all, pages := b.ListAll(t, push.Filter{From: storetest.Began.Add(101 * time.Second), Channel: "sms"}, 1); len(all) != 2 || pages < 3 {
		t.Errorf("from a time on: %d pushes on %d pages", len(all), pages)
	}
}

// TestList_OfARecipient checks that the pushes of a recipient have one order, whatever their states.
func TestList_OfARecipient(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.Exec(t, `INSERT INTO pushes (id, tenant_id, recipient_key, recipient, channel, message, requested_send_at, send_at, next_at, expires_at, status)
		SELECT gen_random_uuid(), $1, $2, 'anna', 'log', '{}', s, s, s, s + interval '1 day', ('{scheduled,sent,failed,canceled,expired}'::text[])[1 + i % 5]
		FROM generate_series(1, 200) i, LATERAL (SELECT $3::timestamptz + (i % 7) * interval '1 second' AS s) s`, b.TenantID, push.RecipientKey(b.TenantID, "anna"), storetest.Began)
	for name, row := range map[string]struct {
		push.Filter
		want int
	}{"all": {push.Filter{Recipient: "anna"}, 200}, "sent": {push.Filter{Recipient: "anna", Status: push.Sent}, 40}, "none": {push.Filter{Recipient: "anna", Channel: "sms"}, 0}} {
		all, _ := b.ListAll(t, row.Filter, 9)
		if len(all) != row.want || !slices.IsSortedFunc(all, inListOrder) {
			t.Errorf("%s: %d pushes, in order %v", name, len(all), slices.IsSortedFunc(all, inListOrder))
		}
		if distinct := slices.CompactFunc(slices.Clone(all), func(a, b push.Push) bool { return a.ID == b.ID }); len(distinct) != len(all) {
			t.Errorf("%s: %d of %d come twice", name, len(all)-len(distinct), len(all))
		}
	}
}

func inListOrder(a, b push.Push) int {
	return cmp.Or(a.SendAt.Compare(b.SendAt), slices.Compare(a.ID[:], b.ID[:]))
}

// TestList_BesideAnotherTenant checks that a tenant has two reads at a time while it is alone, and one while another
// tenant reads.
func TestList_BesideAnotherTenant(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	atOnce := func(tenants ...uuid.UUID) int {
		var lists sync.WaitGroup
		defer lists.Wait()
		b.Exec(t, `BEGIN`)
		defer b.Exec(t, `ROLLBACK`)
		b.Exec(t, `LOCK pushes`)
		for _, tenant := range tenants {
			lists.Go(func() {
				if _, err := b.List(t.Context(), tenant, push.Filter{}, push.Position{}, 10); err != nil {
					t.Error(err)
				}
			})
		}
		b.Waiting(t, 2)
		time.Sleep(50 * time.Millisecond)
		return storetest.Ask[int](t, b.Watch, `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND application_name = 'sendquota' AND wait_event_type = 'Lock'`)
	}
	if n := atOnce(b.TenantID, b.TenantID, b.TenantID, b.TenantID); n != 2 {
		t.Errorf("alone it reads %d times at once, want 2", n)
	}
	calm := uuid.New()
	for range 50 { // until two calls of different tenants begin first
		if atOnce(calm, b.TenantID, calm, b.TenantID, calm, b.TenantID) == 2 {
			return
		}
	}
	t.Error("two tenants never read once each")
}

// TestList_Waiting checks that waiting and running pushes are listed in pages over weeks, whatever was sent before
// them, and with every other filter.
func TestList_Waiting(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	o := booking.Order{}
	for range 120 {
		d := storetest.Draft(b.TenantID, uuid.NewString(), time.Duration(rand.N(30))*24*time.Hour)
		d.Push.Channel, d.Push.Category = []string{"log", "sms"}[rand.N(2)], []string{"", "marketing"}[rand.N(2)]
		o.Drafts = append(o.Drafts, d)
	}
	if _, err := b.Book(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	all, _ := b.ListAll(t, push.Filter{}, 50)
	for _, p := range all[:60] {
		if _, err := b.Cancel(t.Context(), b.TenantID, p.ID); err != nil {
			t.Fatal(err)
		}
	}
	sending := all[70] // as if its time had come
	b.Exec(t, `UPDATE pushes SET send_at = date_trunc('second', now()) WHERE id = $1`, sending.ID)
	b.Exec(t, `UPDATE live SET send_at = p.send_at, phase = 6, token = gen_random_uuid(), started_at = now() FROM pushes p WHERE p.id = push_id AND push_id = $1`, sending.ID)
	all, _ = b.ListAll(t, push.Filter{}, 50)
	for _, f := range []push.Filter{
		{Status: push.Scheduled}, {Status: push.Sending}, {Status: push.Scheduled, Channel: "sms"}, {Status: push.Scheduled, Category: "marketing"},
		{Status: push.Sending, Category: sending.Category, Channel: sending.Channel}, {Status: push.Scheduled, From: all[80].SendAt, Until: all[100].SendAt},
		{Status: push.Scheduled, Recipient: all[90].Recipient},
	} {
		var want []uuid.UUID
		for _, p := range all {
			if p.Status == f.Status && (f.Channel == "" || p.Channel == f.Channel) && (f.Category == "" || p.Category == f.Category) &&
				(f.Recipient == "" || p.Recipient == f.Recipient) && !p.SendAt.Before(f.From) && (f.Until.IsZero() || p.SendAt.Before(f.Until)) {
				want = append(want, p.ID)
			}
		}
		got, pages := b.ListAll(t, f, 7)
		if ids := idsOf(got); !slices.Equal(ids, want) || len(want) == 0 || pages > len(want)/7+10 {
			t.Errorf("%+v: %d pushes on %d pages, want %d", f, len(ids), pages, len(want))
		}
	}
}

func idsOf(pushes []push.Push) (ids []uuid.UUID) {
	for _, p := range pushes {
		ids = append(ids, p.ID)
	}
	return ids
}
