package attempts_test

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/store/storetest"

	"github.com/sendquota/sendquota/internal/store/pg"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
)

// inOrder compares two pushes by the order of Due.
func inOrder(a, b booking.Due) int {
	return cmp.Or(cmp.Compare(a.Rank, b.Rank), a.At.Compare(b.At), cmp.Compare(push.Shard(a.RecipientKey), push.Shard(b.RecipientKey)), cmp.Compare(a.RecipientKey, b.RecipientKey))
}

// TestDue_BurstsLast checks that the single push of a tenant comes before thousands of pushes of a burst that
// have been due for longer.
func TestDue_BurstsLast(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	b.Forge(t, 3000, "log", true, time.Minute)
	b.Exec(t, `UPDATE pushes SET next_at = next_at + interval '1 second' WHERE recipient_key % 2 = 0`)
	d := storetest.Draft(uuid.New(), "anna", -time.Second)
	storetest.MustBook(t, b.Store, nil, d)
	due := b.WantDue(t, storetest.EveryDue(100), 100)
	want := booking.Due{RecipientKey: push.RecipientKey(d.Push.Tenant, "anna"), Tenant: d.Push.Tenant, Channel: "log", At: d.Push.SendAt, Rank: push.RankOf(push.Normal, false)}
	if due[0] != want {
		t.Errorf("first comes %+v, want %+v", due[0], want)
	}
	if !slices.IsSortedFunc(due, inOrder) || !due[1].Rank.Burst() || due[1].Tenant != b.TenantID {
		t.Errorf("in this order: %+v", due)
	}
	all := b.WantDue(t, storetest.EveryDue(5000), 3001)
	if !slices.Equal(all[:100], due) || !slices.IsSortedFunc(all, inOrder) {
		t.Error("asked for all, others come first")
	}
}

// TestDue_Lanes checks that each due push is due in its own lane only. Pushes that are not due, do not wait, or are for
// another channel are in no lane.
func TestDue_Lanes(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	b.Forge(t, 300, "log", false, time.Second)
	b.Forge(t, 300, "log", true, time.Second)
	b.Forge(t, 300, "sms", false, time.Second)
	b.Forge(t, 300, "log", false, -time.Hour)
	for _, status := range push.Statuses {
		if status != push.Scheduled {
			b.InStatus(t, string(status), status)
		}
	}
	for _, n := range []int{1, 4, 256} {
		seen := map[booking.Due]bool{}
		for _, lane := range push.Lanes(n) {
			o := storetest.EveryDue(1000)
			o.Lane = lane
			due, _, err := b.Due(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range due {
				if s := push.Shard(d.RecipientKey); s < lane.First || s > lane.Last || d.Channel != "log" || seen[d] {
					t.Errorf("in lane %s there is %+v", lane, d)
				}
				seen[d] = true
			}
		}
		if len(seen) != 600 {
			t.Errorf("in %d lanes %d are due, want 600", n, len(seen))
		}
	}
}

// TestDue_Behind checks that pushes with the same time are read page by page, the prompt ones first.
func TestDue_Behind(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	b.Forge(t, 500, "log", true, time.Minute)
	b.Forge(t, 500, "log", true, time.Second)
	b.Forge(t, 150, "log", false, time.Second)
	o := storetest.EveryDue(100)
	var all []booking.Due
	for range 12 {
		due := b.WantDue(t, o, min(100, 1150-len(all)))
		all = append(all, due...)
		o.Channels[0].Behind = due[len(due)-1]
	}
	b.WantDue(t, o, 0)
	if len(slices.Compact(all)) != 1150 || !slices.IsSortedFunc(all[:150], inOrder) || !slices.IsSortedFunc(all[150:], inOrder) || all[149].Rank.Burst() || !all[150].Rank.Burst() {
		t.Errorf("%d came, not in order or twice", len(all))
	}
}

// TestDue_From checks that pushes that have been due for longer are left out, of either kind, on the first page and on
// later ones.
func TestDue_From(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	for _, bulk := range []bool{false, true} {
		b.Forge(t, 10, "log", bulk, time.Hour)
		b.Forge(t, 20, "log", bulk, time.Minute)
	}
	b.Exec(t, `UPDATE pushes SET next_at = $1 WHERE next_at > $2`, storetest.Began.Add(-time.Minute), storetest.Began.Add(-30*time.Minute))
	o := storetest.EveryDue(100)
	all := b.WantDue(t, o, 60)
	o.From = all[10].At // the pushes that have been due for a minute
	recent := b.WantDue(t, o, 40)
	if !slices.Equal(recent, append(slices.Clone(all[10:30]), all[40:]...)) {
		t.Errorf("from %s: %+v", o.From, recent)
	}
	o.Channels[0].Behind = all[5]
	b.WantDue(t, o, 40)
	o.Channels[0].Behind = all[19]
	b.WantDue(t, o, 30)
	o.Channels[0].Behind = all[35]
	b.WantDue(t, o, 20)
	o.Channels[0].Behind = all[49]
	b.WantDue(t, o, 10)
	o.From = o.From.Add(-time.Microsecond)
	b.WantDue(t, o, 10)
	o.From = o.From.Add(2 * time.Microsecond)
	b.WantDue(t, o, 0)
}

// TestDue_Most checks the maximum of each channel, which holds for either kind, and the maximum of all pushes together.
func TestDue_Most(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	for _, channel := range []string{"log", "sms", "mail"} {
		b.Forge(t, 20, channel, false, time.Minute)
		b.Forge(t, 20, channel, true, time.Minute)
	}
	o := booking.DueOrder{Lane: push.Lanes(1)[0], Channels: []booking.DueChannel{{Name: "log", Most: 3}, {Name: "sms", Most: 5}, {Name: "fax", Most: 7}}, Most: 100}
	n := map[booking.Due]int{}
	for _, d := range b.WantDue(t, o, 16) {
		n[booking.Due{Channel: d.Channel, Rank: d.Rank}]++
	}
	for kind, n := range n {
		if want := map[string]int{"log": 3, "sms": 5}[kind.Channel]; n != want {
			t.Errorf("%d of %+v, want %d", n, kind, want)
		}
	}
	o.Most = 9
	if due := b.WantDue(t, o, 9); due[7].Rank.Burst() || !due[8].Rank.Burst() {
		t.Errorf("%+v", due)
	}
	o.Most = 0
	b.WantDue(t, o, 0)
	o.Channels = nil
	b.WantDue(t, o, 0)
}

// TestDue_Levels checks that the levels share an answer, that what one lacks goes to the others, and that one level can be
// asked for alone.
func TestDue_Levels(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	b.Forge(t, 300, "log", false, time.Minute)
	b.Exec(t, `UPDATE live SET rank = CASE n % 3 WHEN 0 THEN 0 WHEN 1 THEN 2 ELSE 4 END, phase = CASE n % 3 WHEN 0 THEN 0 WHEN 1 THEN 2 ELSE 4 END
		FROM (SELECT push_id AS id, row_number() OVER () AS n FROM live) r WHERE r.id = live.push_id`)
	count := func(o booking.DueOrder, want int) (n [len(push.Levels)]int) {
		t.Helper()
		for _, d := range b.WantDue(t, o, want) {
			n[d.Rank.Level().Index()]++
		}
		return n
	}
	o := storetest.EveryDue(100)
	if got := count(o, 100); got != [...]int{70, 20, 10} {
		t.Errorf("of a hundred: %v", got)
	}
	o = storetest.EveryDue(210)
	if got := count(o, 210); got[0] != 100 || got[1] < 70 || got[1] > 76 { // 110 are left to the other two
		t.Errorf("of 210: %v", got)
	}
	o.Channels[0].Levels = []push.Level{push.Bulk}
	if got := count(o, 100); got != [...]int{0, 0, 100} {
		t.Errorf("bulk alone: %v", got)
	}
}

// TestDue_Without checks that excluded recipients are replaced by others.
func TestDue_Without(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	b.Forge(t, 50, "log", false, time.Hour)
	b.Booked(t, "anna", -time.Second)
	o := storetest.EveryDue(50)
	for _, d := range b.WantDue(t, o, 50) {
		o.Without = append(o.Without, d.RecipientKey)
	}
	if due := b.WantDue(t, o, 1); due[0].RecipientKey != push.RecipientKey(b.TenantID, "anna") {
		t.Errorf("%+v", due)
	}
	o.Without = append(o.Without, push.RecipientKey(b.TenantID, "anna"))
	b.WantDue(t, o, 0)
}

// TestDue_Clock checks that the time in the answer is Postgres' time, and not before any due push.
func TestDue_Clock(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	p := b.Booked(t, "anna", 0)
	b.Exec(t, `UPDATE pushes SET next_at = clock_timestamp() WHERE id = $1`, p.ID)
	before := storetest.Ask[time.Time](t, b.DB, `SELECT clock_timestamp()`)
	due, now, err := b.Due(t.Context(), storetest.EveryDue(1))
	after := storetest.Ask[time.Time](t, b.DB, `SELECT clock_timestamp()`)
	if err != nil || len(due) != 1 || now.Before(before) || now.After(after) || now.Before(due[0].At) || now.Location() != time.UTC {
		t.Errorf("%+v at %s, between %s and %s; %v", due, now, before, after, err)
	}
}

// TestDue_NotBeforeItsTime checks that a push is not due a moment before its time.
func TestDue_NotBeforeItsTime(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	b.Booked(t, "anna", 0)
	b.Exec(t, `UPDATE pushes SET next_at = clock_timestamp() + interval '300 milliseconds'`)
	storetest.Eventually(t, "it is due", func() bool {
		due, now, err := b.Due(t.Context(), storetest.EveryDue(1))
		if err != nil || len(due) > 0 && now.Before(due[0].At) {
			t.Fatalf("%+v at %s, %v", due, now, err)
		}
		return len(due) > 0
	})
}

// TestDue_Locked checks that due pushes are read while other transactions change them.
func TestDue_Locked(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	p := b.Booked(t, "anna", 0)
	b.Exec(t, `BEGIN`)
	b.Exec(t, `UPDATE pushes SET status = 'canceled', plan = plan + 1 WHERE id = $1`, p.ID)
	b.WantDue(t, storetest.EveryDue(10), 1)
	b.Exec(t, `COMMIT`)
	b.WantDue(t, storetest.EveryDue(10), 0)
}

// TestBacklog checks that Backlog counts all due pushes, for any channel and of either kind, and that Overdue counts
// only pushes for channels that this program sends through.
func TestBacklog(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	if n, oldest, err := b.Backlog(t.Context()); n != 0 || oldest != 0 || err != nil {
		t.Errorf("at first: %d, %s, %v", n, oldest, err)
	}
	b.Booked(t, "later", time.Hour)
	if d, err := b.Overdue(t.Context()); d != 0 || err != nil {
		t.Errorf("nothing is due: overdue for %s, %v", d, err)
	}
	b.Forge(t, 2, "log", false, time.Minute)
	b.Forge(t, 3, "log", true, time.Hour)
	b.Forge(t, 4, "fax", false, 2*time.Hour)
	only := storetest.OpenURL(t, b.URL, pg.Config{Channels: []string{"log", "sms"}})
	n, oldest, err := only.Backlog(t.Context())
	if err != nil || n != 9 || oldest < 2*time.Hour || oldest > 3*time.Hour {
		t.Errorf("backlog: %d, %s, %v", n, oldest, err)
	}
	if d, err := only.Overdue(t.Context()); err != nil || d < time.Hour || d > 2*time.Hour {
		t.Errorf("overdue for %s, %v", d, err)
	}
	if d, err := b.Overdue(t.Context()); err != nil || d < 2*time.Hour {
		t.Errorf("with all channels overdue for %s, %v", d, err)
	}
}

// TestBacklog_Large checks that a large backlog is counted up to a limit, and that its oldest push is found all the
// same.
func TestBacklog_Large(t *testing.T) {
	t.Parallel()
	const counted = 100_000
	b := setupNew(t)
	for channel, n := range map[string]int{"fax": counted / 10, "log": counted + 5} { // Backlog does not read the pushes themselves
		b.ForgeMany(t, `INSERT INTO live (recipient_key, send_at, next_at, expires_at, plan, phase, rank, push_id, tenant_id, channel, shard)
			SELECT i, at, at, at + interval '1 day', 0, 2 + ($1 = 'log')::int, 2 + ($1 = 'log')::int, gen_random_uuid(), $2, $1, i & 255
			FROM generate_series(1, $3) i, LATERAL (SELECT now() - interval '1 minute' AS at) a`, channel, b.TenantID, n)
	}
	b.Forge(t, 1, "sms", false, time.Hour)
	read := b.RowsRead(t, pg.Config{Timeout: time.Minute, ReadTimeout: 30 * time.Second}, func() {
		if n, oldest, err := b.Backlog(t.Context()); err != nil || n != counted || oldest < time.Hour || oldest > 2*time.Hour {
			t.Errorf("%d, %s, %v", n, oldest, err)
		}
	})
	if read > counted+100 {
		t.Errorf("%d rows were read", read)
	}
}

// TestBook_Burst checks that a push is stored as part of a burst.
func TestBook_Burst(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	var drafts []booking.Draft
	for i, recipient := range []string{"anna", "bert", "carl"} {
		drafts = append(drafts, storetest.Draft(b.TenantID, recipient, -time.Second))
		drafts[i].Push.Burst = i > 0
	}
	if _, err := b.Book(t.Context(), booking.Order{Drafts: drafts}); err != nil {
		t.Fatal(err)
	}
	for _, d := range b.WantDue(t, storetest.EveryDue(10), 3) {
		if prompt := d.RecipientKey == push.RecipientKey(b.TenantID, "anna"); prompt == d.Rank.Burst() {
			t.Errorf("%+v", d)
		}
	}
}
