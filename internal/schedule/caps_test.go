package schedule_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/schedule"
)

// tomorrow is noon of the next UTC day: a few hours from it are still the same day.
var tomorrow = began.Truncate(24 * time.Hour).Add(36 * time.Hour)

func to(recipient string, at time.Time) schedule.Request {
	return schedule.Request{Content: push.Content{Recipient: recipient, Message: json.RawMessage(`{}`)}, SendAt: at}
}

func pendingCap(n int) push.OwnCaps    { return push.OwnCaps{PendingPushes: &n} }
func recipientsCap(n int) push.OwnCaps { return push.OwnCaps{RecipientsPerDay: &n} }

// mustCap wants the refusal of a cap.
func mustCap(t *testing.T, err error, want booking.Capped) {
	t.Helper()
	var capped *booking.Capped
	if !errors.As(err, &capped) || *capped != want {
		t.Errorf("%v (%+v), want %+v", err, capped, want)
	}
}

// TestCaps_PendingPushes: the fourth of several requests is refused, at any service, and a canceled push makes room at
// once.
func TestCaps_PendingPushes(t *testing.T) {
	t.Parallel()
	b := setup(t)
	bundles := []*schedule.Service{b.serviceAt(threeRules, time.Now), b.serviceAt(threeRules, time.Now)}
	submit := func(i int, dry bool) (push.Push, error) {
		res, err := bundles[i%2].Submit(t.Context(), b.tenant, to(fmt.Sprintf("r%d", i), tomorrow), schedule.Options{Caps: pendingCap(3), ValidateOnly: dry})
		return res.Push, err
	}
	var booked []push.Push
	for i := range 3 {
		if _, err := submit(i, true); err != nil {
			t.Fatalf("validation of push %d: %v", i, err)
		}
		p, err := submit(i, false)
		if err != nil {
			t.Fatalf("push %d: %v", i, err)
		}
		booked = append(booked, p)
	}
	full := booking.Capped{Cap: booking.PendingPushes, Limit: 3, Used: 3}
	for i := 3; i < 5; i++ {
		for _, dry := range []bool{true, false} {
			_, err := submit(i, dry)
			mustCap(t, err, full)
		}
	}
	if n := b.metrics.of("submitted capped pending_pushes"); n != 2 {
		t.Errorf("%d refusals were counted", n)
	}
	if _, err := b.Cancel(t.Context(), b.tenant, booked[0].ID); err != nil {
		t.Fatal(err)
	}
	if _, err := submit(5, false); err != nil {
		t.Errorf("after a cancel: %v", err)
	}
	_, err := submit(6, false)
	mustCap(t, err, full)

	// A move needs no place. Another tenant has its own room, and a tenant without a cap is never refused.
	if _, err := b.Reschedule(t.Context(), b.tenant, booked[1].ID, tomorrow.Add(time.Hour), pendingCap(3)); err != nil {
		t.Errorf("a move: %v", err)
	}
	if _, err := b.Submit(t.Context(), uuid.New(), to("r", tomorrow), schedule.Options{Caps: pendingCap(3)}); err != nil {
		t.Errorf("another tenant: %v", err)
	}
	for _, caps := range []push.OwnCaps{{}, pendingCap(0)} {
		if _, err := b.Submit(t.Context(), b.tenant, to(uuid.NewString(), tomorrow), schedule.Options{Caps: caps}); err != nil {
			t.Errorf("no cap: %v", err)
		}
	}
}

// TestCaps_RecipientsPerDay: another push to a recipient on the same day takes no room, and each day has room of its
// own.
func TestCaps_RecipientsPerDay(t *testing.T) {
	t.Parallel()
	b := newServers(t).open(t, nil) // without rules, other bookings are not read
	b.Service = b.serviceAt(nil, time.Now)
	submit := func(recipient string, at time.Time) (push.Push, error) {
		res, err := b.Submit(t.Context(), b.tenant, to(recipient, at), schedule.Options{Caps: recipientsCap(2)})
		return res.Push, err
	}
	midnight := tomorrow.Truncate(24 * time.Hour)
	var anna push.Push
	for i, s := range []struct {
		who string
		at  time.Time
	}{
		{"anna", midnight}, {"bert", tomorrow}, {"anna", midnight.Add(24*time.Hour - time.Second)}, {"bert", midnight},
		{"carl", midnight.Add(-time.Second)}, {"carl", midnight.Add(24 * time.Hour)},
	} {
		p, err := submit(s.who, s.at)
		if err != nil {
			t.Fatalf("push %d: %v", i, err)
		}
		if i == 0 {
			anna = p
		}
	}
	full := booking.Capped{Cap: booking.RecipientsPerDay, Limit: 2, Used: 2, Day: booking.DayOf(midnight)}
	for _, at := range []time.Time{midnight, tomorrow, midnight.Add(24*time.Hour - time.Second)} {
		_, err := submit("carl", at)
		mustCap(t, err, full)
	}

	// A move to the full day is refused and keeps the old place; a move within it is not refused.
	other, err := submit("carl", midnight.Add(30*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	_, err = b.Reschedule(t.Context(), b.tenant, other.ID, tomorrow, recipientsCap(2))
	mustCap(t, err, full)
	if p := b.read(t, other.ID); !p.SendAt.Equal(other.SendAt) {
		t.Errorf("a refused move moved it to %s", p.SendAt)
	}
	if _, err := b.Reschedule(t.Context(), b.tenant, anna.ID, tomorrow, recipientsCap(2)); err != nil {
		t.Errorf("a move within the day: %v", err)
	}
	// A place becomes free once anna has no push left on that day.
	if _, err := b.Cancel(t.Context(), b.tenant, anna.ID); err != nil {
		t.Fatal(err)
	}
	_, err = submit("carl", tomorrow)
	mustCap(t, err, full)
	list, err := b.List(t.Context(), b.tenant, push.Filter{Recipient: "anna", Status: push.Scheduled}, push.Position{}, 10)
	if err != nil || len(list.Pushes) != 1 {
		t.Fatal(len(list.Pushes), err)
	}
	if _, err := b.Cancel(t.Context(), b.tenant, list.Pushes[0].ID); err != nil {
		t.Fatal(err)
	}
	last, err := submit("carl", tomorrow)
	if err != nil {
		t.Fatalf("after anna's last push was canceled: %v", err)
	}
	if _, err := b.Reschedule(t.Context(), b.tenant, last.ID, midnight, recipientsCap(2)); err != nil {
		t.Errorf("a move within the full day of the only push: %v", err)
	}
}

// TestCaps_DeferredToFullDay: a push that a conflict moves counts for its new day.
func TestCaps_DeferredToFullDay(t *testing.T) {
	t.Parallel()
	perDay := quota.Policy{{Name: "per-day", Limit: 1, Window: 24 * time.Hour}}
	b := newServers(t).open(t, perDay)
	b.Service = b.serviceAt(perDay, time.Now)
	caps := schedule.Options{Caps: recipientsCap(1)}
	mustBook := func(r schedule.Request) push.Push {
		t.Helper()
		res, err := b.Submit(t.Context(), b.tenant, r, caps)
		if err != nil {
			t.Fatal(err)
		}
		return res.Push
	}
	mustBook(to("anna", tomorrow))
	next := mustBook(to("bert", tomorrow.Add(24*time.Hour)))
	again := to("anna", tomorrow.Add(time.Minute))
	again.Defer = true
	_, err := b.Submit(t.Context(), b.tenant, again, caps)
	mustCap(t, err, booking.Capped{Cap: booking.RecipientsPerDay, Limit: 1, Used: 1, Day: booking.DayOf(next.SendAt)})
	if _, err := b.Cancel(t.Context(), b.tenant, next.ID); err != nil {
		t.Fatal(err)
	}
	if p := mustBook(again); !p.SendAt.Equal(tomorrow.Add(24 * time.Hour)) {
		t.Errorf("deferred to %s", p.SendAt)
	}

	// Also in a batch, where the pushes before it are booked only once.
	again = to("anna", tomorrow)
	again.Defer = true
	members := []schedule.Member{{Request: to("carl", tomorrow.Add(72*time.Hour))}, {Request: again}}
	if err := b.SubmitBatch(t.Context(), b.tenant, members, false, caps); err != nil {
		t.Fatal(err)
	}
	if members[0].Err != nil || members[1].Err != nil || !members[1].Decision.Push.SendAt.Equal(tomorrow.Add(48*time.Hour)) {
		t.Errorf("%+v", members)
	}
}

// TestCaps_Batches: members take room in their order, members that the quota refuses take none, and an atomic batch
// books all or nothing.
func TestCaps_Batches(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.Service = b.serviceAt(threeRules, time.Now)
	batch := func(atomic, dry bool, caps push.OwnCaps, recipients ...string) []schedule.Member {
		t.Helper()
		var members []schedule.Member
		for _, r := range recipients {
			members = append(members, schedule.Member{Request: to(r, tomorrow)})
		}
		if err := b.SubmitBatch(t.Context(), b.tenant, members, atomic, schedule.Options{Caps: caps, ValidateOnly: dry}); err != nil {
			t.Fatal(err)
		}
		return members
	}
	full := booking.Capped{Cap: booking.PendingPushes, Limit: 3, Used: 3}
	for _, dry := range []bool{true, false} {
		got := batch(false, dry, pendingCap(3), "a", "a", "b", "c", "d", "a")
		var refusal *schedule.Refusal
		for i, ok := range []bool{true, false, true, true, false, false} {
			if (got[i].Err == nil) != ok {
				t.Errorf("dry %v, member %d: %v", dry, i, got[i].Err)
			}
		}
		mustCap(t, got[4].Err, full)
		if !errors.As(got[1].Err, &refusal) || !errors.As(got[5].Err, &refusal) {
			t.Errorf("the quota: %v, %v", got[1].Err, got[5].Err)
		}
	}
	for _, m := range batch(true, false, pendingCap(4), "e", "f") {
		if m.Err == nil {
			t.Error("an atomic batch with one place was booked")
		}
	}
	day := booking.DayOf(tomorrow)
	got := batch(false, false, recipientsCap(4), "e", "f")
	if got[0].Err != nil {
		t.Error(got[0].Err)
	}
	mustCap(t, got[1].Err, booking.Capped{Cap: booking.RecipientsPerDay, Limit: 4, Used: 4, Day: day})
}

// TestCaps_Replays: a replay needs no room under a cap.
func TestCaps_Replays(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.Service = b.serviceAt(threeRules, time.Now)
	keyed := schedule.Options{IdempotencyKey: "k", RequestHash: make([]byte, 32), Caps: pendingCap(1)}
	first, err := b.Submit(t.Context(), b.tenant, to("anna", tomorrow), keyed)
	if err != nil {
		t.Fatal(err)
	}
	again, err := b.Submit(t.Context(), b.tenant, to("anna", tomorrow), keyed)
	if err != nil || again.Outcome != booking.Replayed || again.Push.ID != first.Push.ID {
		t.Errorf("%+v, %v", again, err)
	}
	other := keyed
	other.IdempotencyKey = "l"
	_, err = b.Submit(t.Context(), b.tenant, to("bert", tomorrow), other)
	mustCap(t, err, booking.Capped{Cap: booking.PendingPushes, Limit: 1, Used: 1})
}

// TestCaps_Concurrent: concurrent requests to one process meet the cap exactly. With several processes they exceed it
// by the number of these requests at most, and afterwards the cap holds.
func TestCaps_Concurrent(t *testing.T) {
	t.Parallel()
	const limit, crowd, each = 40, 8, 20
	for _, caps := range []push.OwnCaps{pendingCap(limit), recipientsCap(limit)} {
		for _, processes := range []int{1, 2} {
			b := setup(t)
			var bundles []*schedule.Service
			for range processes {
				bundles = append(bundles, b.serviceAt(threeRules, time.Now))
			}
			booked := crowdAt(t, crowd, func(c int) error {
				for i := range each {
					_, err := bundles[c%processes].Submit(t.Context(), b.tenant, to(fmt.Sprintf("r%d-%d", c, i), tomorrow), schedule.Options{Caps: caps})
					var capped *booking.Capped
					if errors.As(err, &capped) && capped.Used >= limit {
						continue
					}
					if err != nil {
						return err
					}
				}
				return nil
			}, b)
			most := limit + (processes-1)*(crowd-1)
			if booked < limit || booked > most {
				t.Errorf("%+v: %d processes booked %d, want %d to %d", caps, processes, booked, limit, most)
			}
			_, err := b.Submit(t.Context(), b.tenant, to("late", tomorrow), schedule.Options{Caps: caps})
			var capped *booking.Capped
			if !errors.As(err, &capped) || capped.Used != min(booked, limit+1) {
				t.Errorf("afterwards: %v", err)
			}
		}
	}
}

// TestCaps_NewTenant: of twenty concurrent requests three are booked, and batches and moves among them exceed no cap.
func TestCaps_NewTenant(t *testing.T) {
	t.Parallel()
	for range 5 {
		b := setup(t)
		b.Service = b.serviceAt(threeRules, time.Now)
		booked := crowdAt(t, 20, func(c int) error {
			_, err := b.Submit(t.Context(), b.tenant, to(fmt.Sprint(c), tomorrow), schedule.Options{Caps: pendingCap(3)})
			if capped := (*booking.Capped)(nil); err == nil || errors.As(err, &capped) && *capped == (booking.Capped{Cap: booking.PendingPushes, Limit: 3, Used: 3}) {
				return nil
			}
			return err
		}, b)
		if booked != 3 {
			t.Errorf("%d of 20 were booked, want 3", booked)
		}
	}

	b := setup(t)
	b.Service = b.serviceAt(threeRules, time.Now)
	var elsewhere []push.Push
	for i := range 8 {
		res, err := b.Submit(t.Context(), b.tenant, to(fmt.Sprintf("m%d", i), tomorrow.Add(24*time.Hour)), schedule.Options{})
		if err != nil {
			t.Fatal(err)
		}
		elsewhere = append(elsewhere, res.Push)
	}
	crowdAt(t, 16, func(c int) error {
		if c < 8 {
			_, err := b.Reschedule(t.Context(), b.tenant, elsewhere[c].ID, tomorrow, recipientsCap(10))
			if capped := (*booking.Capped)(nil); err != nil && !errors.As(err, &capped) {
				return err
			}
			return nil
		}
		members := []schedule.Member{{Request: to(fmt.Sprintf("a%d", c), tomorrow)}, {Request: to(fmt.Sprintf("b%d", c), tomorrow)}}
		return b.SubmitBatch(t.Context(), b.tenant, members, false, schedule.Options{Caps: recipientsCap(10)})
	}, b)
	if n, err := b.store.Recipients(t.Context(), b.tenant, booking.DayOf(tomorrow), 100); err != nil || n != 10 {
		t.Errorf("%d recipients on the day, want 10 (%v)", n, err)
	}
}

// crowdAt runs do concurrently, crowd times, and returns the number of pending pushes afterwards.
func crowdAt(t *testing.T, crowd int, do func(c int) error, b *bundle) int {
	t.Helper()
	var wg sync.WaitGroup
	start := make(chan struct{})
	for c := range crowd {
		wg.Go(func() {
			<-start
			if err := do(c); err != nil {
				t.Error(err)
			}
		})
	}
	close(start)
	wg.Wait()
	n, err := b.store.Pending(t.Context(), b.tenant, 1000)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestCaps_OwnCaps: a tenant's own cap overrides the cap of all tenants.
func TestCaps_OwnCaps(t *testing.T) {
	n, none := 5, 0
	usual := push.Caps{PendingPushes: 7, RecipientsPerDay: 9}
	for _, row := range []struct {
		own  push.OwnCaps
		want push.Caps
	}{
		{push.OwnCaps{}, usual},
		{push.OwnCaps{PendingPushes: &n}, push.Caps{PendingPushes: 5, RecipientsPerDay: 9}},
		{push.OwnCaps{PendingPushes: &none, RecipientsPerDay: &n}, push.Caps{RecipientsPerDay: 5}},
	} {
		if got := row.own.Over(usual); got != row.want {
			t.Errorf("%+v, want %+v", got, row.want)
		}
	}
	if d := booking.DayOf(time.Date(1969, 12, 31, 23, 59, 59, 0, time.UTC)); d != -1 || slices.Contains([]booking.Day{d}, booking.DayOf(time.Unix(0, 0))) {
		t.Errorf("the last second before 1970 lies on day %d", d)
	}
}
