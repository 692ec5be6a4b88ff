package pushes_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/store/storetest"
)

// TestBook_Orders decides several drafts at once, under a limit of one per minute. bert has a push in an hour, and one
// with the key "used".
func TestBook_Orders(t *testing.T) {
	t.Parallel()
	policy := quota.Policy{{Name: "minute", Limit: 1, Window: time.Minute}}
	type d struct {
		recipient, key, body string
		in                   time.Duration
		latest               time.Duration
	}
	const (
		booked, refused, replayed, reused = booking.Booked, booking.NoPlace, booking.Replayed, booking.KeyReused
		hour                              = time.Hour
		ahead                             = time.Hour // of all send times: none is overdue for the audit, however long the tests before took
	)
	for _, row := range []struct {
		name           string
		atomic, dryRun bool
		drafts         []d
		want           []booking.Outcome
		rows           int // more than there were
	}{
		{"members conflict in the order given", false, false, []d{{in: 0}, {in: 30 * time.Second}, {in: time.Minute}}, []booking.Outcome{booked, refused, booked}, 2},
		{"a refused member is no obstacle", false, false, []d{{recipient: "bert", in: hour}, {recipient: "bert", in: hour + time.Minute}}, []booking.Outcome{refused, booked}, 1},
		{"atomic, and all have a place", true, false, []d{{in: 0}, {in: time.Minute}}, []booking.Outcome{booked, booked}, 2},
		{"atomic, and one has none", true, false, []d{{in: 0}, {recipient: "bert", in: hour}, {in: time.Minute}}, []booking.Outcome{booked, refused, booked}, 0},
		{"a dry run", false, true, []d{{in: 0}, {in: 0}}, []booking.Outcome{booked, refused}, 0},
		{"an atomic dry run", true, true, []d{{in: 0}}, []booking.Outcome{booked}, 0},
		{"a replay", false, false, []d{{recipient: "bert", key: "used", body: "b", in: 0}, {in: 0}}, []booking.Outcome{replayed, booked}, 1},
		{"an atomic replay", true, false, []d{{recipient: "bert", key: "used", body: "b", in: 0}, {in: 0}}, []booking.Outcome{replayed, booked}, 1},
		{"a key of another request leaves nothing", false, false, []d{{in: 0}, {recipient: "bert", key: "used", body: "x", in: 0}}, []booking.Outcome{booked, reused}, 0},
		{"moved to the next free time", false, false, []d{{recipient: "bert", in: hour, latest: 2 * hour}}, []booking.Outcome{booked}, 1},
		{"the next free time is the latest", false, false, []d{{recipient: "bert", in: hour, latest: hour + time.Minute}}, []booking.Outcome{booked}, 1},
		{"the next free time is too late", false, false, []d{{recipient: "bert", in: hour, latest: hour + time.Minute - time.Second}}, []booking.Outcome{refused}, 0},
		{"moved behind another member", false, false, []d{{in: 0}, {in: 0, latest: hour}, {in: 0, latest: hour}}, []booking.Outcome{booked, booked, booked}, 3},
		{"members of many recipients", false, false, []d{{recipient: "carl", in: 0}, {recipient: "dora", in: 0}, {recipient: "emil", in: 0}}, []booking.Outcome{booked, booked, booked}, 3},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.Booked(t, "bert", ahead+hour)
			storetest.MustBook(t, b.Store, nil, storetest.MustKeyed(b.TenantID, "bert", "used", "b", ahead+3*hour))
			var o = booking.Order{Policy: policy, Atomic: row.atomic, DryRun: row.dryRun}
			for _, d := range row.drafts {
				if d.recipient == "" {
					d.recipient = "anna"
				}
				member := storetest.Draft(b.TenantID, d.recipient, ahead+d.in)
				if d.key != "" {
					member = storetest.MustKeyed(b.TenantID, d.recipient, d.key, d.body, ahead+d.in)
				}
				if d.latest > 0 {
					member.Latest = member.Push.SendAt.Add(d.latest - d.in)
				}
				o.Drafts = append(o.Drafts, member)
			}
			decisions, err := b.Book(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			var got []booking.Outcome
			for _, v := range decisions {
				got = append(got, v.Outcome)
			}
			if !slices.Equal(got, row.want) {
				t.Errorf("outcomes %v, want %v", got, row.want)
			}
			if n := storetest.Ask[int](t, b.DB, `SELECT count(*) FROM pushes WHERE tenant_id = $1`, b.TenantID) - 2; n != row.rows {
				t.Errorf("%d new rows, want %d", n, row.rows)
			}
			b.MustAudit(t, policy)
		})
	}
}

// TestBook_MovedDraft checks that a moved draft keeps its requested send time, and that its expiry moves along.
func TestBook_MovedDraft(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for range 4 {
		b.Booked(t, "anna", time.Hour)
	}
	d := storetest.Draft(b.TenantID, "anna", time.Hour)
	asked := d.Push.SendAt
	d.Latest = asked.Add(48 * time.Hour)
	v := storetest.MustBook(t, b.Store, quota.Policy{{Name: "day", Limit: 4, Window: 24 * time.Hour}}, d)
	p := b.MustRead(t, v.Push)
	if want := asked.Add(24 * time.Hour); !p.SendAt.Equal(want) || !p.NextAt.Equal(want) || !p.ExpiresAt.Equal(want.Add(24*time.Hour)) || !p.RequestedSendAt.Equal(asked) {
		t.Errorf("%+v", p)
	}
}

// TestBook_Show checks that a decision shows all bookings from now on, whatever the policy needs.
func TestBook_Show(t *testing.T) {
	t.Parallel()
	b := setup(t)
	early, far := b.Booked(t, "anna", 2*time.Hour), b.Booked(t, "anna", 300*24*time.Hour)
	d := storetest.Draft(b.TenantID, "anna", 10*time.Hour)
	d.Show = true
	v := storetest.MustBook(t, b.Store, quota.Policy{{Name: "minute", Limit: 1, Window: time.Minute}}, d)
	want := []quota.Booking{{ID: early.ID, At: early.SendAt}, {ID: d.Push.ID, At: d.Push.SendAt}, {ID: far.ID, At: far.SendAt}}
	if diff := cmp.Diff(want, v.Bookings); diff != "" {
		t.Error(diff)
	}
}

// TestBook_KeepsAllFields checks that every field of a push is stored and read.
func TestBook_KeepsAllFields(t *testing.T) {
	t.Parallel()
	b := setup(t)
	d := storetest.MustKeyed(b.TenantID, "ann'a\\ 💌", "k", "hash", time.Hour)
	d.Push.Category, d.Push.To = "marketing", "+4512345678"
	d.Push.Message, d.Push.Metadata = []byte(`{"b": 1,  "a":[null, 12345678901234567890]}`), []byte(`{}`)
	v := storetest.MustBook(t, b.Store, storetest.ThreeRules, d)
	got := b.MustRead(t, v.Push)
	got.CreatedAt, got.UpdatedAt = v.Push.CreatedAt, v.Push.UpdatedAt
	want := v.Push
	want.Sends, want.RequestMember = []push.Send{}, [16]byte{}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestBook_LockAndReadInOneStatement checks that a statement that takes the lock and reads the neighbours books a
// second push into the same minute. The store, which reads in a later statement, refuses that push.
func TestBook_LockAndReadInOneStatement(t *testing.T) {
	t.Parallel()
	policy := quota.Policy{{Name: "minute", Limit: 1, Window: time.Minute}}

	t.Run("one statement", func(t *testing.T) {
		t.Parallel()
		b := setupAlone(t)
		d, db := storetest.Draft(b.TenantID, "anna", time.Hour), storetest.Connect(t, b.URL)
		b.Overtake(t, d.Push.SendAt, func() {
			if booked, err := storetest.InOneStatement(t.Context(), db, d); !booked || err != nil {
				t.Errorf("the statement does not book twice: booked %v, %v", booked, err)
			}
		})
		findings, err := b.Audit(t.Context(), policy, time.Now())
		if err != nil || len(findings) != 1 || findings[0].Check != "promised-window" {
			t.Errorf("the audit finds %+v, %v", findings, err)
		}
		if booked, err := storetest.InOneStatement(t.Context(), db, storetest.Draft(b.TenantID, "anna", time.Hour)); booked || err != nil {
			t.Errorf("even alone it books: %v, %v", booked, err)
		}
	})

	t.Run("the store", func(t *testing.T) {
		t.Parallel()
		b := setupAlone(t)
		d := storetest.Draft(b.TenantID, "anna", time.Hour)
		b.Overtake(t, d.Push.SendAt, func() {
			v, err := b.Book(t.Context(), booking.Order{Drafts: []booking.Draft{d}, Policy: policy})
			if err != nil || v[0].Outcome != booking.NoPlace || len(v[0].Quota.Violations) != 1 {
				t.Errorf("%+v, %v", v, err)
			}
		})
		b.MustAudit(t, policy)
	})

	t.Run("the store, moving", func(t *testing.T) {
		t.Parallel()
		b := setupAlone(t)
		p := b.Booked(t, "anna", 2*time.Hour)
		old := p.SendAt
		p.SendAt = p.SendAt.Add(-time.Hour)
		b.Overtake(t, p.SendAt, func() {
			v, err := b.Reschedule(t.Context(), booking.Order{Drafts: []booking.Draft{{Push: p}}, Policy: policy})
			if err != nil || v.Outcome != booking.NoPlace {
				t.Errorf("%+v, %v", v, err)
			}
		})
		if now := b.MustRead(t, p); !now.SendAt.Equal(old) || now.Gen != p.Gen {
			t.Errorf("the old place was not kept: %+v", now)
		}
		b.MustAudit(t, policy)
	})
}
