package booking_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/policy/policytest"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/testenv"
)

// crowd is a set of recipients of a campaign under random rules, each with a delay after the first.
type crowd struct {
	terms  booking.Terms
	held   []quota.Timeline
	people []booking.Person
	drafts []booking.Draft
	behind []time.Duration
	usage  *booking.CapUsage
}

// starts is the number of candidate starts: quarters of an hour.
const starts = 96

func crowds(t *rapid.T) (x crowd, from time.Time) {
	w := policytest.Ahead(noon).Draw(t, "world")
	document := w.Documents(0).Draw(t, "document")
	terms, err := document.Compile(policytest.Channels)
	if err != nil {
		t.Skip("always quiet")
	}
	from = w.Moments().Draw(t, "from").Truncate(time.Second)
	x.terms = terms
	kind := policytest.Kinds().Draw(t, "kind")
	latest := from.Add(time.Duration(rapid.IntRange(1, 72).Draw(t, "latest")) * time.Hour)
	deferred := rapid.Bool().Draw(t, "deferred")
	tenant := uuid.New()
	for i := range rapid.IntRange(1, 5).Draw(t, "recipients") {
		var line quota.Timeline
		for n, minutes := range rapid.SliceOfN(rapid.IntRange(-3000, 6000), 0, 6).Draw(t, "held") {
			line = line.Insert(quota.Booking{ID: uuid.UUID{byte(i), byte(n)}, At: from.Add(time.Duration(minutes) * time.Minute), Kind: policytest.Kinds().Draw(t, "kind of booking")})
		}
		behind := time.Duration(rapid.IntRange(0, 7200).Draw(t, "behind")) * time.Second
		at := from.Add(behind)
		d := booking.Draft{Push: push.Push{Content: push.Content{Recipient: fmt.Sprint(i), Channel: kind.Channel, Category: kind.Category}, ID: uuid.New(), Tenant: tenant, RequestedSendAt: at, SendAt: at}}
		if d.Last = latest; deferred {
			d.Latest = latest
		}
		x.held, x.people = append(x.held, line), append(x.people, booking.Person{Person: w.People().Draw(t, "person")})
		x.drafts, x.behind = append(x.drafts, d), append(x.behind, behind)
	}
	if rapid.Bool().Draw(t, "capped") {
		x.usage = &booking.CapUsage{Days: map[booking.Day]int{}}
		x.usage.PendingPushes, x.usage.RecipientsPerDay = rapid.IntRange(0, 5).Draw(t, "pending pushes"), rapid.IntRange(0, 4).Draw(t, "recipients per day")
		x.usage.Pending = rapid.IntRange(0, 3).Draw(t, "pending")
	}
	return x, from
}

// counted returns how many recipients have pushes on a day before the campaign.
func counted(day booking.Day) (int, error) { return int(day % 4), nil }

// view returns all bookings of a recipient.
func (x *crowd) view(i int) *quota.View {
	return &quota.View{Until: booking.EndOfTime, Timeline: quota.NewTimeline(x.held[i].Bookings())}
}

// book decides all drafts for a campaign start, and returns how many are accepted at their time.
func (x *crowd) book(first time.Time) (accepted int) {
	all, people := views{}, map[quota.Recipient]booking.Person{}
	order := booking.Order{Policy: x.terms, Now: noon}
	for i, d := range x.drafts {
		all[d.Recipient()], people[d.Recipient()] = x.view(i), x.people[i]
		d.Push.SendAt = first.Add(x.behind[i])
		d.Push.RequestedSendAt = d.Push.SendAt
		if d.Push.SendAt.After(d.Last) {
			continue
		}
		order.Drafts = append(order.Drafts, d)
	}
	if x.usage != nil {
		usage := *x.usage
		usage.Days = map[booking.Day]int{}
		for day := booking.DayOf(first) - 1; day < booking.DayOf(first)+30; day++ {
			usage.Days[day], _ = counted(day)
		}
		order.CapUsage = &usage
	}
	for _, v := range booking.NewDecider(booking.Snapshot{Now: noon, Views: all, People: people}).Book(order) {
		if v.Outcome == booking.Uncounted {
			panic("a day was not counted")
		}
		if v.Outcome == booking.Booked && v.Push.SendAt.Equal(v.Push.RequestedSendAt) {
			accepted++
		}
	}
	return accepted
}

// TestStarts_Oracle compares the count of each start with a full decision.
func TestStarts_Oracle(t *testing.T) {
	t.Parallel()
	var some, none int
	check := func(t *rapid.T) {
		x, from := crowds(t)
		s := booking.NewStarts(from, x.usage)
		for i, d := range x.drafts {
			s.Widen(&d, x.behind[i])
			view := (&booking.Order{CapUsage: x.usage, Now: noon}).Around(x.terms, &d)
			view.Timeline = quota.NewTimeline(slices.DeleteFunc(x.held[i].Bookings(), func(b quota.Booking) bool { return !b.At.After(view.From) || !b.At.Before(view.Until) }))
			of := booking.Standing{Terms: x.terms, Person: x.people[i]}
			if err := s.Add(s.Look(d, x.behind[i], of.Policy(booking.KindOf(&d.Push)), &view), counted); err != nil {
				t.Fatal(err)
			}
		}
		var want []booking.Start
		first := from.Add(booking.StartStep - 1).Truncate(booking.StartStep)
		for i := range starts {
			at := first.Add(time.Duration(i) * booking.StartStep)
			want = append(want, booking.Start{At: at, Accepted: x.book(at)})
		}
		got := s.Better(-1, time.Time{}, starts)
		for _, g := range got {
			if n := int(g.At.Sub(first) / booking.StartStep); n < 0 || n >= starts || want[n] != g {
				t.Fatalf("%+v, want %+v", g, want[n])
			}
			if g.Accepted > 0 {
				some++
			} else {
				none++
			}
		}
		if len(got) != starts {
			t.Fatalf("%d starts", len(got))
		}
	}
	testenv.Enough(func() bool { return min(some, none) >= 500 }, func() { rapid.Check(t, check) })
	if min(some, none) < 500 {
		t.Errorf("%d starts with recipients, and %d without: nothing was tested", some, none)
	}
}

// TestStarts_Better checks the order: the best first, the earlier of equal ones first, none that is worse or too late.
func TestStarts_Better(t *testing.T) {
	t.Parallel()
	s := booking.NewStarts(noon.Add(time.Second), nil)
	d := booking.Draft{Last: noon.Add(30 * 24 * time.Hour)}
	for _, blocked := range []time.Duration{time.Hour, 2 * time.Hour} {
		view := &quota.View{Until: booking.EndOfTime, Timeline: quota.NewTimeline([]quota.Booking{{At: noon}})}
		if err := s.Add(s.Look(d, 0, quota.Policy{{Limit: 1, Window: blocked}}, view), counted); err != nil {
			t.Fatal(err)
		}
	}
	want := []booking.Start{{At: noon.Add(2 * time.Hour), Accepted: 2}, {At: noon.Add(2*time.Hour + booking.StartStep), Accepted: 2}}
	if got := s.Better(1, time.Time{}, 2); !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := s.Better(0, time.Time{}, 100); len(got) != 93 || got[92].Accepted != 1 || !got[92].At.Equal(noon.Add(2*time.Hour-booking.StartStep)) {
		t.Errorf("%d starts: %+v", len(got), got[len(got)-1])
	}
	if got := s.Better(1, noon.Add(2*time.Hour), 2); !slices.Equal(got, want[:1]) {
		t.Errorf("%+v, want %+v", got, want[:1])
	}
	if got := s.Better(2, time.Time{}, 5); got == nil || len(got) > 0 {
		t.Errorf("%+v", got)
	}
}

// TestDecider_LookOnly checks that a LookOnly draft reads its view and is not decided.
func TestDecider_LookOnly(t *testing.T) {
	b := setup(t)
	seen := booking.Draft{Push: b.push("anna", time.Hour), LookOnly: true}
	order := booking.Order{Drafts: []booking.Draft{seen, {Push: b.push("anna", time.Hour)}}, Policy: onePerMinute, Now: noon}
	if got := outcomes(b.decider().Book(order)); !slices.Equal(got, []booking.Outcome{booking.Undecided, booking.Booked}) || len(b.views) != 1 {
		t.Errorf("%v, and %d views", got, len(b.views))
	}
}
