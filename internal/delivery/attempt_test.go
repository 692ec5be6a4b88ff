package delivery_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/channel"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// TestOutcomes: what the provider says, and what becomes of the push and of
// its place in the ledger.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	policy := quota.Policy{{Name: "hour", Limit: 1, Window: time.Hour}}
	for name, row := range map[string]struct {
		result channel.Result
		status push.Status
		error  string
		unsure bool
		free   bool // its place can be booked by another
	}{
		"delivered":        {channel.Result{Outcome: push.Delivered, ProviderMessageID: "m-1"}, push.Sent, "", false, false},
		"refused":          {channel.Result{Outcome: push.Refused, Error: "busy"}, push.Scheduled, "busy", false, false},
		"refused for good": {channel.Result{Outcome: push.Refused, Final: true, Error: "bad"}, push.Failed, "bad", false, true},
		"unregistered":     {channel.Result{Outcome: push.Refused, Final: true, Unregistered: true, Error: "unregistered: gone"}, push.Failed, "unregistered: gone", false, true},
		"unknown":          {channel.Result{Outcome: push.Unknown, Error: "reset"}, push.Scheduled, "reset", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := open(t, nil)
			d.answer = func(context.Context, push.Push, int) channel.Result { return row.result }
			p := d.book(t, "anna", "log", thisSecond().Add(-time.Second))
			anna := quota.Recipient{Tenant: d.tenant, ID: "anna"}
			place := quota.Booking{ID: p.ID, At: p.SendAt}
			d.ledger.Reserve(anna, place, policy)
			d.ledger.Fill(anna, p.ID, []quota.Booking{place})

			d.handle(t, "anna")
			got := d.read(t, p.ID)
			if got.Status != row.status || got.LastError != row.error || got.PossiblyDelivered != row.unsure {
				t.Errorf("%+v", got)
			}
			if s := got.Sends; len(s) != 1 || s[0].Outcome != row.result.Outcome || s[0].ProviderMessageID != row.result.ProviderMessageID || s[0].Error != row.result.Error {
				t.Errorf("%+v", s)
			}
			want := attempted{"log", string(row.result.Outcome), true, got.Sends[0].StartedAt.Sub(p.SendAt)}
			if len(d.seen.attempted) != 1 || d.seen.attempted[0] != want {
				t.Errorf("told the metrics %+v, want %+v", d.seen.attempted, want)
			}
			if n := len(d.seen.unregistered); (n == 1) != row.result.Unregistered {
				t.Errorf("told the metrics of %d addresses at which nobody is", n)
			}
			if free := d.ledger.Reserve(anna, quota.Booking{ID: uuid.New(), At: p.SendAt}, policy).State == quota.Free; free != row.free {
				t.Errorf("its place is free: %v", free)
			}
		})
	}
}

// TestEveryAttemptBearsTheSameID, until none is left.
func TestEveryAttemptBearsTheSameID(t *testing.T) {
	t.Parallel()
	d := open(t, nil)
	d.answer = func(_ context.Context, _ push.Push, attempt int) channel.Result {
		return channel.Result{Outcome: push.Refused, Error: "busy"}
	}
	p := d.book(t, "anna", "log", thisSecond())
	for range retry.MaxAttempts {
		d.handle(t, "anna")
		d.due(t, p)
	}
	for i, s := range d.all() {
		if s.push.ID != p.ID || s.attempt != i+1 {
			t.Errorf("attempt %d: %+v", i+1, s)
		}
	}
	if got := d.read(t, p.ID); got.Status != push.Failed || got.Attempts != 3 || got.LastError != "gave up after 3 attempts: busy" {
		t.Errorf("%+v", got)
	}
}

// due makes a push due that waits for its next attempt, if it still does.
func (d *depot) due(t testing.TB, p push.Push) {
	t.Helper()
	if d.read(t, p.ID).Status != push.Scheduled {
		return
	}
	if next := d.read(t, p.ID).NextAt; time.Until(next) < 40*time.Second {
		t.Errorf("the next attempt is at %s, now is %s", next, time.Now())
	}
	if _, err := d.store.Reschedule(t.Context(), moveTo(p, thisSecond())); err != nil {
		t.Fatal(err)
	}
}

// TestPushesOfAChannelThatIsGone wait for it to come back, until they expire:
// they do not fail for a while in which it was missing.
func TestPushesOfAChannelThatIsGone(t *testing.T) {
	t.Parallel()
	d := open(t, nil)
	p := d.book(t, "anna", "gone", thisSecond())
	for attempt := 1; attempt <= retry.MaxAttempts+2; attempt++ {
		d.handle(t, "anna")
		got := d.read(t, p.ID)
		if got.Status != push.Scheduled || got.Attempts != attempt || got.LastError != "the channel is not configured any more" || got.PossiblyDelivered {
			t.Fatalf("after attempt %d: %+v", attempt, got)
		}
		d.due(t, p)
	}
	if n := len(d.all()); n != 0 {
		t.Errorf("%d were sent through another channel", n)
	}
}

// TestNothingToDo: a stale wake-up, of a push that is canceled or sent.
func TestNothingToDo(t *testing.T) {
	t.Parallel()
	d := open(t, nil)
	p := d.book(t, "anna", "log", thisSecond())
	if _, err := d.store.Cancel(t.Context(), d.tenant, p.ID); err != nil {
		t.Fatal(err)
	}
	d.handle(t, "anna")
	d.handle(t, "nobody")
	d.book(t, "bert", "log", thisSecond())
	d.handle(t, "bert")
	d.handle(t, "bert")
	if sent := d.all(); len(sent) != 1 || sent[0].push.Recipient != "bert" {
		t.Errorf("sent %+v", sent)
	}
}

// TestTooLateIsNotSent, and who waits behind it is.
func TestTooLateIsNotSent(t *testing.T) {
	t.Parallel()
	d := open(t, nil)
	late := d.book(t, "anna", "log", thisSecond().Add(-2*time.Hour)) // its hour is over
	next := d.book(t, "anna", "log", thisSecond())
	d.handle(t, "anna")
	if got := d.read(t, late.ID); got.Status != push.Expired || len(got.Sends) != 0 {
		t.Errorf("%+v", got)
	}
	if got := d.read(t, next.ID); got.Status != push.Sent {
		t.Errorf("%+v", got)
	}
}
