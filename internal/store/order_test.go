package store_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// TestBook_Orders decides several drafts at once, under one per minute. bert has a push in an hour, and one of the key
// "used".
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
			b.booked(t, "bert", ahead+hour)
			book(t, b.Store, nil, keyed(b.tenant, "bert", "used", "b", ahead+3*hour))
			var o = booking.Order{Policy: policy, Atomic: row.atomic, DryRun: row.dryRun}
			for _, d := range row.drafts {
				if d.recipient == "" {
					d.recipient = "anna"
				}
				member := draft(b.tenant, d.recipient, ahead+d.in)
				if d.key != "" {
					member = keyed(b.tenant, d.recipient, d.key, d.body, ahead+d.in)
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
			if n := ask[int](t, b.db, `SELECT count(*) FROM pushes WHERE tenant_id = $1`, b.tenant) - 2; n != row.rows {
				t.Errorf("%d new rows, want %d", n, row.rows)
			}
			b.audit(t, policy)
		})
	}
}

// TestBook_MovedDraft: a moved draft keeps its requested send time, and its expiry moves along.
func TestBook_MovedDraft(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for range 4 {
		b.booked(t, "anna", time.Hour)
	}
	d := draft(b.tenant, "anna", time.Hour)
	asked := d.Push.SendAt
	d.Latest = asked.Add(48 * time.Hour)
	v := book(t, b.Store, quota.Policy{{Name: "day", Limit: 4, Window: 24 * time.Hour}}, d)
	p := b.read(t, v.Push)
	if want := asked.Add(24 * time.Hour); !p.SendAt.Equal(want) || !p.NextAt.Equal(want) || !p.ExpiresAt.Equal(want.Add(24*time.Hour)) || !p.RequestedSendAt.Equal(asked) {
		t.Errorf("%+v", p)
	}
}

// TestBook_Show: a decision shows all bookings from now on, whatever the policy needs.
func TestBook_Show(t *testing.T) {
	t.Parallel()
	b := setup(t)
	early, far := b.booked(t, "anna", 2*time.Hour), b.booked(t, "anna", 300*24*time.Hour)
	d := draft(b.tenant, "anna", 10*time.Hour)
	d.Show = true
	v := book(t, b.Store, quota.Policy{{Name: "minute", Limit: 1, Window: time.Minute}}, d)
	want := []quota.Booking{{ID: early.ID, At: early.SendAt}, {ID: d.Push.ID, At: d.Push.SendAt}, {ID: far.ID, At: far.SendAt}}
	if diff := cmp.Diff(want, v.Bookings); diff != "" {
		t.Error(diff)
	}
}

// TestBook_KeepsAllFields: a push is read as it was booked.
func TestBook_KeepsAllFields(t *testing.T) {
	t.Parallel()
	b := setup(t)
	d := keyed(b.tenant, "ann'a\\ 💌", "k", "hash", time.Hour)
	d.Push.Category, d.Push.To = "marketing", "+4512345678"
	d.Push.Message, d.Push.Metadata = []byte(`{"b": 1,  "a":[null, 12345678901234567890]}`), []byte(`{}`)
	v := book(t, b.Store, threeRules, d)
	got := b.read(t, v.Push)
	got.CreatedAt, got.UpdatedAt = v.Push.CreatedAt, v.Push.UpdatedAt
	want := v.Push
	want.Sends, want.RequestMember = []push.Send{}, [16]byte{}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
