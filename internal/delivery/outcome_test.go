package delivery_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/channel"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/testenv"
)

// The provider's answer determines the result of the push, and whether its place in the cache is freed.
func TestWorker_Outcomes(t *testing.T) {
	t.Parallel()
	policy := quota.Policy{{Name: "hour", Limit: 1, Window: time.Hour}}
	for name, row := range map[string]struct {
		result channel.Result
		status push.Status
		error  string
		unsure bool
		free   bool // its place can be booked by another
	}{
		"delivered":           {channel.Result{Outcome: push.Delivered, ProviderMessageID: "m-1"}, push.Sent, "", false, false},
		"refused":             {channel.Result{Outcome: push.Refused, Error: "busy"}, push.Scheduled, "busy", false, false},
		"refused permanently": {channel.Result{Outcome: push.Refused, Final: true, Error: "bad"}, push.Failed, "bad", false, true},
		"unregistered":        {channel.Result{Outcome: push.Refused, Final: true, Unregistered: true, Error: "unregistered: gone"}, push.Failed, "unregistered: gone", false, true},
		"unknown":             {channel.Result{Outcome: push.Unknown, Error: "reset"}, push.Scheduled, "reset", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := setup(t, nil)
			d.answer = func(context.Context, push.Push, int) channel.Result { return row.result }
			p := d.book(t, "anna", "log", thisSecond().Add(-time.Second))
			anna := quota.Recipient{Tenant: d.tenant, ID: "anna"}
			place := quota.Booking{ID: p.ID, At: p.SendAt}
			d.cache.Fill(anna, []quota.Booking{place}, false)
			testenv.Check(t, d.cache.Flush(t.Context()))

			d.handle(t)
			got := d.read(t, p.ID)
			if got.Status != row.status || got.LastError != row.error || got.PossiblyDelivered != row.unsure {
				t.Errorf("%+v", got)
			}
			if s := got.Sends; len(s) != 1 || s[0].Outcome != row.result.Outcome || s[0].ProviderMessageID != row.result.ProviderMessageID || s[0].Error != row.result.Error {
				t.Errorf("%+v", s)
			}
			want := attempted{"log", string(row.result.Outcome), true, got.Sends[0].StartedAt.Sub(p.SendAt)}
			if len(d.metrics.attempted) != 1 || d.metrics.attempted[0] != want {
				t.Errorf("metrics %+v, want %+v", d.metrics.attempted, want)
			}
			if n := len(d.metrics.unregistered); (n == 1) != row.result.Unregistered {
				t.Errorf("%d unregistered addresses were counted", n)
			}
			if free := d.cache.Reserve(anna, quota.Booking{ID: uuid.New(), At: p.SendAt}, policy).State == quota.Free; free != row.free {
				t.Errorf("its place is free: %v", free)
			}
		})
	}
}

// All attempts of a push have the same id.
func TestWorker_AttemptsBearOneID(t *testing.T) {
	t.Parallel()
	d := setup(t, nil)
	d.answer = func(_ context.Context, _ push.Push, attempt int) channel.Result {
		return channel.Result{Outcome: push.Refused, Error: "busy"}
	}
	p := d.book(t, "anna", "log", thisSecond())
	for range retry.MaxAttempts {
		d.handle(t)
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
func (d *bundle) due(t testing.TB, p push.Push) {
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

// Pushes of a channel that is no longer configured wait without an attempt until they expire; the recipient's other
// pushes are sent.
func TestWorker_ChannelGone(t *testing.T) {
	t.Parallel()
	d := setup(t, nil)
	p, other := d.book(t, "anna", "gone", thisSecond()), d.book(t, "anna", "log", thisSecond())
	for range retry.MaxAttempts + 2 {
		d.handle(t)
	}
	if got := d.read(t, p.ID); got.Status != push.Scheduled || got.Attempts != 0 || got.LastError != "" {
		t.Fatalf("%+v", got)
	}
	if got := d.read(t, other.ID); got.Status != push.Sent || len(d.all()) != 1 {
		t.Errorf("%+v; %d were sent", got, len(d.all()))
	}
	ahead, err := d.store.Ahead(t.Context(), []push.CountedLane{{Lane: all}}, time.Minute)
	overdue, overdueErr := d.store.Overdue(t.Context())
	if err := errors.Join(err, overdueErr); err != nil || len(ahead[0].Oldest) != 0 || overdue != 0 || len(ahead[0].Moments) != 0 {
		t.Errorf("%+v, overdue for %s, %v", ahead, overdue, err)
	}
	late := p
	late.ID, late.TTL, late.ExpiresAt = push.NewID(late.SendAt, push.RecipientKey(late.Tenant, late.Recipient)), 0, time.Now().Add(time.Millisecond)
	if _, err := d.store.Book(t.Context(), booking.Order{Drafts: []booking.Draft{{Push: late}}}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it expires", func() bool {
		ended, err := d.store.Expire(t.Context(), push.Lanes(1), 10)
		return err == nil && len(ended) == 1
	})
	if got := d.read(t, late.ID); got.Status != push.Expired || got.LastError != "it expired before it could be sent: its channel is not configured any more" {
		t.Errorf("%+v", got)
	}
}

// Wake-ups of pushes that are canceled or sent do nothing.
func TestWorker_StaleWakeUps(t *testing.T) {
	t.Parallel()
	d := setup(t, nil)
	p := d.book(t, "anna", "log", thisSecond())
	if _, err := d.store.Cancel(t.Context(), d.tenant, p.ID); err != nil {
		t.Fatal(err)
	}
	d.handle(t)
	d.book(t, "bert", "log", thisSecond())
	d.handle(t)
	d.handle(t)
	if sent := d.all(); len(sent) != 1 || sent[0].push.Recipient != "bert" {
		t.Errorf("sent %+v", sent)
	}
}

// A push that is too late is not sent, and the next one is.
func TestWorker_TooLate(t *testing.T) {
	t.Parallel()
	d := setup(t, nil)
	late := d.book(t, "anna", "log", thisSecond().Add(-2*time.Hour)) // its hour is over
	next := d.book(t, "anna", "log", thisSecond())
	d.handle(t)
	if got := d.read(t, late.ID); got.Status != push.Expired || len(got.Sends) != 0 {
		t.Errorf("%+v", got)
	}
	if got := d.read(t, next.ID); got.Status != push.Sent {
		t.Errorf("%+v", got)
	}
}
