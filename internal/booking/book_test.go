package booking_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

const hour = time.Hour

// TestDecider_Book covers drafts under one push per minute: anna has none, and bert has one in an hour.
func TestDecider_Book(t *testing.T) {
	type draft struct {
		recipient  string
		in, latest time.Duration // latest 0: a conflict refuses it
	}
	anna := func(in time.Duration) draft { return draft{recipient: "anna", in: in} }
	bert := func(in time.Duration) draft { return draft{recipient: "bert", in: in} }
	const booked, refused = booking.Booked, booking.NoPlace
	for _, row := range []struct {
		name           string
		atomic, dryRun bool
		drafts         []draft
		want           []booking.Outcome
		booked         map[string][]time.Duration // the bookings afterwards, but for bert's first
	}{
		{name: "a free time", drafts: []draft{anna(0)}, want: []booking.Outcome{booked}, booked: map[string][]time.Duration{"anna": {0}}},
		{name: "the time of another push", drafts: []draft{bert(hour)}, want: []booking.Outcome{refused}},
		{name: "too close before another push", drafts: []draft{bert(hour - 59*time.Second)}, want: []booking.Outcome{refused}},
		{name: "exactly a window before and behind", drafts: []draft{bert(hour - time.Minute), bert(hour + time.Minute)},
			want: []booking.Outcome{booked, booked}, booked: map[string][]time.Duration{"bert": {hour - time.Minute, hour + time.Minute}}},
		{name: "drafts conflict in their order", drafts: []draft{anna(0), anna(30 * time.Second), anna(time.Minute)},
			want: []booking.Outcome{booked, refused, booked}, booked: map[string][]time.Duration{"anna": {0, time.Minute}}},
		{name: "a refused draft takes no place", drafts: []draft{bert(hour), bert(hour + time.Minute)},
			want: []booking.Outcome{refused, booked}, booked: map[string][]time.Duration{"bert": {hour + time.Minute}}},
		{name: "recipients do not conflict", drafts: []draft{anna(hour), {recipient: "carl", in: hour}},
			want: []booking.Outcome{booked, booked}, booked: map[string][]time.Duration{"anna": {hour}, "carl": {hour}}},

		{name: "atomic, and all have a free time", atomic: true, drafts: []draft{anna(0), anna(time.Minute)},
			want: []booking.Outcome{booked, booked}, booked: map[string][]time.Duration{"anna": {0, time.Minute}}},
		{name: "atomic, and one has none", atomic: true, drafts: []draft{anna(0), bert(hour), anna(time.Minute)}, want: []booking.Outcome{booked, refused, booked}},
		{name: "a dry run", dryRun: true, drafts: []draft{anna(0), anna(0)}, want: []booking.Outcome{booked, refused}},
		{name: "an atomic dry run", atomic: true, dryRun: true, drafts: []draft{anna(0)}, want: []booking.Outcome{booked}},

		{name: "moved to the next free time", drafts: []draft{{"bert", hour, 2 * hour}},
			want: []booking.Outcome{booked}, booked: map[string][]time.Duration{"bert": {hour + time.Minute}}},
		{name: "the next free time is the latest", drafts: []draft{{"bert", hour, hour + time.Minute}},
			want: []booking.Outcome{booked}, booked: map[string][]time.Duration{"bert": {hour + time.Minute}}},
		{name: "the next free time is too late", drafts: []draft{{"bert", hour, hour + 59*time.Second}}, want: []booking.Outcome{refused}},
		{name: "a free time is kept", drafts: []draft{{"anna", 0, hour}}, want: []booking.Outcome{booked}, booked: map[string][]time.Duration{"anna": {0}}},
		{name: "moved behind other drafts", drafts: []draft{anna(0), {"anna", 0, hour}, {"anna", 0, hour}},
			want: []booking.Outcome{booked, booked, booked}, booked: map[string][]time.Duration{"anna": {0, time.Minute, 2 * time.Minute}}},
	} {
		t.Run(row.name, func(t *testing.T) {
			b := setup(t)
			b.hold("bert", hour)
			o := booking.Order{Policy: onePerMinute, Atomic: row.atomic, DryRun: row.dryRun, Now: noon}
			for _, d := range row.drafts {
				draft := booking.Draft{Push: b.push(d.recipient, d.in)}
				if d.latest > 0 {
					draft.Latest = noon.Add(d.latest)
				}
				o.Drafts = append(o.Drafts, draft)
			}
			decider := b.decider()
			if got := outcomes(decider.Book(o)); !cmp.Equal(got, row.want) {
				t.Errorf("outcomes %v, want %v", got, row.want)
			}
			granted := 0
			for _, recipient := range []string{"anna", "bert", "carl"} {
				want := row.booked[recipient]
				granted += len(want)
				if recipient == "bert" {
					want = append([]time.Duration{hour}, want...)
					if len(want) == 3 { // one of them lies before
						want[0], want[1] = want[1], want[0]
					}
				}
				if got := b.bookings(recipient); !cmp.Equal(got, want) {
					t.Errorf("%s has bookings at %v, want %v", recipient, got, want)
				}
			}
			if len(decider.Granted) != granted {
				t.Errorf("%d pushes are to be stored, want %d", len(decider.Granted), granted)
			}
		})
	}
}

// TestDecider_StoredPush checks the stored fields of a push that a conflict has moved.
func TestDecider_StoredPush(t *testing.T) {
	b := setup(t)
	b.hold("anna", 0)
	p := b.push("anna", 0)
	decider := b.decider()
	o := booking.Order{Drafts: []booking.Draft{{Push: p, Latest: noon.Add(hour)}}, Policy: onePerMinute}
	d := decider.Book(o)[0]
	want := p
	want.SendAt, want.NextAt = noon.Add(time.Minute), noon.Add(time.Minute)
	want.RequestedSendAt = noon                    // the requested time is kept
	want.ExpiresAt = noon.Add(time.Minute + p.TTL) // the time to live moves with the send time
	want.Status, want.Gen = push.Scheduled, 1      //
	want.CreatedAt, want.UpdatedAt = noon, noon    // by Postgres' clock
	if diff := cmp.Diff(want, decider.Granted[0].Push); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(want, d.Push); diff != "" {
		t.Error(diff)
	}
	if d.Usage[0].Used != 1 || d.Usage[0].Remaining != 0 {
		t.Errorf("usage %+v does not count the push", d.Usage)
	}
}

// TestDecider_FixedExpiry checks that the expiry of a push without a TTL stays where the caller set it.
func TestDecider_FixedExpiry(t *testing.T) {
	b := setup(t)
	b.hold("anna", 0)
	p := b.push("anna", 0)
	p.TTL, p.ExpiresAt = 0, noon.Add(2*hour)
	o := booking.Order{Drafts: []booking.Draft{{Push: p, Latest: noon.Add(hour)}}, Policy: onePerMinute}
	if got := b.decider().Book(o)[0].Push; !got.SendAt.After(noon) || !got.ExpiresAt.Equal(p.ExpiresAt) {
		t.Errorf("moved to %s, it expires at %s", got.SendAt, got.ExpiresAt)
	}
}

// TestDecider_Idempotency: bert has a push from request "k" with body "b".
func TestDecider_Idempotency(t *testing.T) {
	request, other := uuid.New(), uuid.New()
	with := func(p push.Push, request uuid.UUID, body string) push.Push {
		p.IdempotencyID, p.IdempotencyHash, p.RequestMember = request, []byte(body), p.ID
		return p
	}
	const booked, replayed, reused = booking.Booked, booking.Replayed, booking.KeyReused
	for _, row := range []struct {
		name   string
		drafts func(b *bundle, first push.Push) []push.Push
		want   []booking.Outcome
		grants int
	}{
		{"the same request", func(_ *bundle, first push.Push) []push.Push { return []push.Push{first} }, []booking.Outcome{replayed}, 0},
		{"the same request with another body", func(_ *bundle, first push.Push) []push.Push {
			return []push.Push{with(first, request, "other")}
		}, []booking.Outcome{reused}, 0},
		{"another member of the same request", func(b *bundle, _ push.Push) []push.Push {
			return []push.Push{with(b.push("carl", 0), request, "b")}
		}, []booking.Outcome{booked}, 1},
		{"another member of another request under the key", func(b *bundle, _ push.Push) []push.Push {
			return []push.Push{b.push("anna", 0), with(b.push("carl", 0), request, "longer")}
		}, []booking.Outcome{booked, reused}, 0},
		{"the id of another tenant's push", func(_ *bundle, first push.Push) []push.Push {
			first.Tenant, first.IdempotencyID = uuid.New(), uuid.Nil
			return []push.Push{first}
		}, []booking.Outcome{reused}, 0},
		{"two of one request in one order", func(b *bundle, _ push.Push) []push.Push {
			p := with(b.push("anna", 0), other, "b")
			return []push.Push{p, p}
		}, []booking.Outcome{booked, replayed}, 1},
		{"two requests under one new key", func(b *bundle, _ push.Push) []push.Push {
			return []push.Push{with(b.push("anna", 0), other, "b"), with(b.push("carl", 0), other, "c")}
		}, []booking.Outcome{booked, reused}, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			b := setup(t)
			first := with(b.hold("bert", hour)[0], request, "b")
			b.keyed = []booking.Keyed{{Key: request, Member: first.RequestMember, Hash: first.IdempotencyHash, Tenant: first.Tenant, ID: first.ID}}
			decider := b.decider()
			o := booking.Order{Policy: onePerMinute}
			for _, p := range row.drafts(b, first) {
				o.Drafts = append(o.Drafts, booking.Draft{Push: p})
			}
			decisions := decider.Book(o)
			if got := outcomes(decisions); !cmp.Equal(got, row.want) || len(decider.Granted) != row.grants {
				t.Errorf("outcomes %v with %d grants, want %v with %d", got, len(decider.Granted), row.want, row.grants)
			}
			for _, d := range decisions {
				if d.Outcome == replayed && d.Push.ID != o.Drafts[0].Push.ID {
					t.Errorf("replayed %s", d.Push.ID)
				}
			}
		})
	}
}

// TestDecider_LostReply checks that a repeated transaction finds its committed pushes and returns the same decisions.
func TestDecider_LostReply(t *testing.T) {
	b := setup(t)
	o := booking.Order{Drafts: []booking.Draft{{Push: b.push("anna", 0), Show: true}}, Policy: onePerMinute}
	first := b.decider()
	want := first.Book(o)
	b.existing = []push.Push{first.Granted[0].Push}
	second := b.decider()
	got := second.Book(o)
	want[0].NewRecipientOfDay, got[0].NewRecipientOfDay = false, false
	if diff := cmp.Diff(want, got); diff != "" || len(second.Granted) != 0 {
		t.Errorf("%d grants: %s", len(second.Granted), diff)
	}
}

// TestDecider_TakenBack checks that orders that book nothing do not affect the other orders of the same transaction.
func TestDecider_TakenBack(t *testing.T) {
	b := setup(t)
	b.hold("bert", hour)
	key := uuid.New()
	keyed := func() booking.Draft {
		p := b.push("anna", 0)
		p.IdempotencyID, p.IdempotencyHash = key, []byte(fmt.Sprint(p.ID))
		return booking.Draft{Push: p}
	}
	decider := b.decider()
	order := func(atomic, dryRun bool, drafts ...booking.Draft) []booking.Outcome {
		return outcomes(decider.Book(booking.Order{Drafts: drafts, Policy: onePerMinute, Atomic: atomic, DryRun: dryRun}))
	}
	order(false, true, keyed())
	order(true, false, keyed(), booking.Draft{Push: b.push("bert", hour)})
	if got := order(false, false, keyed()); got[0] != booking.Booked { // another request, by its hash
		t.Errorf("outcome %v: a place or a key is not given back", got)
	}
	if got := order(false, false, booking.Draft{Push: b.push("anna", time.Second)}); got[0] != booking.NoPlace {
		t.Errorf("outcome %v: an order does not count for the next", got)
	}
	if len(decider.Granted) != 1 || decider.Granted[0].Usage[0].Used != 1 {
		t.Errorf("granted %+v", decider.Granted)
	}
}

// TestDecider_Refused checks that a refusal names the rule and the conflicts, and free times if all bookings around
// them are known.
func TestDecider_Refused(t *testing.T) {
	for name, row := range map[string]struct {
		reach    time.Duration // known range around noon; 0: all
		complete bool
	}{
		"all bookings are known":          {0, true},
		"enough bookings are known":       {2 * hour, true},
		"the next free time is not known": {hour + 20*time.Minute, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t)
			held := b.hold("anna", 0, 20*time.Minute)
			view := b.View(quota.Recipient{Tenant: b.tenant, ID: "anna"})
			if row.reach > 0 {
				view.From, view.Until = noon.Add(-row.reach), noon.Add(row.reach)
			}
			p := b.push("anna", 30*time.Minute)
			d := b.decider().Book(booking.Order{Drafts: []booking.Draft{{Push: p}}, Policy: twoPerHour, Now: noon.Add(-2 * hour)})[0]
			conflicts := []quota.Booking{{ID: held[0].ID, At: noon}, {ID: held[1].ID, At: noon.Add(20 * time.Minute)}}
			if d.Outcome != booking.NoPlace || len(d.Quota.Violations) != 1 || !cmp.Equal(d.Quota.Violations[0].Conflicts, conflicts) {
				t.Fatalf("%+v", d)
			}
			if d.Complete != row.complete {
				t.Errorf("complete %v", d.Complete)
			}
			if next, previous := noon.Add(hour), noon.Add(-40*time.Minute); row.complete && (!d.Quota.Next.Equal(next) || !d.Quota.Previous.Equal(previous)) {
				t.Errorf("free at %s and %s, want %s and %s", d.Quota.Next, d.Quota.Previous, next, previous)
			}
		})
	}
}

// TestDecider_Unseen checks that a next free time beyond the view repeats the order, unless it is too late anyway.
func TestDecider_Unseen(t *testing.T) {
	for _, row := range []struct {
		name   string
		until  time.Duration // known range after noon
		latest time.Duration
		far    bool
		want   booking.Outcome
	}{
		{"all is known", 2 * hour, 5 * hour, false, booking.Booked},
		{"a booking may come in between", 2*hour - 1, 5 * hour, false, booking.Unseen},
		{"it comes again at most once", 2*hour - 1, 5 * hour, true, booking.Booked},
		{"it is too late anyway", 2*hour - 1, hour - time.Second, false, booking.NoPlace},
	} {
		t.Run(row.name, func(t *testing.T) {
			b := setup(t)
			b.hold("anna", 0, 20*time.Minute)
			b.View(quota.Recipient{Tenant: b.tenant, ID: "anna"}).Until = noon.Add(row.until)
			x := b.decider()
			drafts := []booking.Draft{{Push: b.push("bert", 0)}, {Push: b.push("anna", 20*time.Minute), Latest: noon.Add(row.latest), Far: row.far}}
			made := x.Book(booking.Order{Drafts: drafts, Policy: twoPerHour, Now: noon})
			if made[1].Outcome != row.want {
				t.Errorf("%+v", made[1])
			}
			want := map[booking.Outcome]int{booking.Booked: 2, booking.NoPlace: 1}[row.want]
			if len(x.Granted) != want {
				t.Errorf("%d pushes are to be stored, want %d", len(x.Granted), want)
			}
		})
	}
}

// TestDecider_Granted checks that an incomplete refusal lists the order's earlier bookings for the recipient, because
// they are not in Postgres.
func TestDecider_Granted(t *testing.T) {
	b := setup(t)
	anna := b.View(quota.Recipient{Tenant: b.tenant, ID: "anna"})
	anna.From, anna.Until = noon.Add(-61*time.Second), noon.Add(61*time.Second)
	first := b.push("anna", 0)
	d := b.decider().Book(booking.Order{
		Drafts: []booking.Draft{{Push: first}, {Push: b.push("bert", 0)}, {Push: b.push("anna", time.Second)}}, Policy: onePerMinute, Atomic: true,
	})
	if diff := cmp.Diff([]quota.Booking{{ID: first.ID, At: noon}}, d[2].Granted); diff != "" || d[2].Complete {
		t.Errorf("complete %v, granted: %s", d[2].Complete, diff)
	}
}

// TestDecider_Bookings checks that a draft with Show returns all bookings including its own, booked or refused, up to a
// crowd.
func TestDecider_Bookings(t *testing.T) {
	for _, row := range []struct {
		name        string
		since       bool
		held        int
		in          time.Duration
		shown       int
		wantCrowded bool
	}{
		{"not asked for", false, 3, 10 * hour, 0, false},
		{"booked", true, 3, 10 * hour, 4, false},
		{"refused", true, 3, 0, 3, false},
		{"just not a crowd", true, booking.Crowd, 0, booking.Crowd, false},
		{"a crowd", true, booking.Crowd, 10 * hour, 0, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			b := setup(t)
			for range row.held {
				b.hold("anna", 0)
			}
			d := booking.Draft{Push: b.push("anna", row.in)}
			if row.since {
				d.Show = true
			}
			got := b.decider().Book(booking.Order{Drafts: []booking.Draft{d}, Policy: onePerMinute})[0]
			if len(got.Bookings) != row.shown || got.Crowded != row.wantCrowded {
				t.Errorf("shows %d, crowded %v", len(got.Bookings), got.Crowded)
			}
		})
	}
}

// TestOrder_Around checks the range that must be known before a decision.
func TestOrder_Around(t *testing.T) {
	days := &booking.CapUsage{Caps: push.Caps{RecipientsPerDay: 1}}
	midnight := noon.Add(-12 * hour)
	for _, row := range []struct {
		name         string
		usage        *booking.CapUsage
		latest, last time.Time
		far          bool
		policy       booking.Terms // nil: two per hour
		decided      time.Time
		from, until  time.Time
	}{
		{name: "twice the reach of the rules", from: noon.Add(-2 * hour), until: noon.Add(2 * hour)},
		{name: "and behind the latest time", latest: noon.Add(5 * hour), from: noon.Add(-2 * hour), until: noon.Add(6 * hour)},
		{name: "which at first is in the next days", latest: noon.Add(500 * hour), from: noon.Add(-2 * hour), until: noon.Add(49 * hour)},
		{name: "and then wherever it is", latest: noon.Add(500 * hour), far: true, from: noon.Add(-2 * hour), until: noon.Add(501 * hour)},
		{name: "and the whole day", usage: days, from: midnight.Add(-1), until: midnight.Add(24 * hour)},
		{name: "and all days on which it may land", usage: days, latest: midnight.Add(30 * hour), from: midnight.Add(-1), until: midnight.Add(48 * hour)},
		{name: "and everything that matters from now on, if it is to be shown", decided: noon.Add(-9 * hour),
			from: noon.Add(-10*hour - 2*time.Minute), until: booking.EndOfTime},
		{name: "without quiet hours nothing moves by itself", last: noon.Add(5 * hour), from: noon.Add(-2 * hour), until: noon.Add(2 * hour)},
		{name: "as far as quiet hours may move it", last: noon.Add(5 * hour), policy: append(twoPerHour[:1:1], quota.Rule{Quiet: true, Defers: true, Periods: noHours{}}),
			from: noon.Add(-2 * hour), until: noon.Add(6 * hour)},
	} {
		t.Run(row.name, func(t *testing.T) {
			d := booking.Draft{Push: setup(t).push("anna", 0), Latest: row.latest, Last: row.last, Far: row.far, Show: !row.decided.IsZero()}
			terms := row.policy
			if terms == nil {
				terms = twoPerHour
			}
			v := (&booking.Order{CapUsage: row.usage, Now: row.decided}).Around(terms, &d)
			if !v.From.Equal(row.from) || !v.Until.Equal(row.until) {
				t.Errorf("from %s until %s, want %s and %s", v.From, v.Until, row.from, row.until)
			}
		})
	}
}

// noHours are quiet hours that never come.
type noHours struct{}

func (noHours) Around(t time.Time) (from, until time.Time, inside bool) { return t, t.Add(hour), false }
func (noHours) Longest() time.Duration                                  { return 0 }

// TestNearLimit: four fifths of the limit of a rule are used.
func TestNearLimit(t *testing.T) {
	for _, row := range []struct {
		limit, used int
		want        bool
	}{{1, 1, false}, {2, 1, false}, {2, 2, true}, {5, 3, false}, {5, 4, true}, {10, 8, true}, {10, 7, false}, {0, 3, false}} {
		if got := booking.NearLimit(quota.Usage{Rule: quota.Rule{Limit: row.limit}, Used: row.used}); got != row.want {
			t.Errorf("%d of %d: %v", row.used, row.limit, got)
		}
	}
}
