package delivery_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/channel"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

func moveTo(p push.Push, at time.Time) booking.Order {
	p.SendAt, p.RequestedSendAt = at, at
	return booking.Order{Drafts: []booking.Draft{{Push: p}}}
}

// Pushes a window apart are delayed until the end of the last one's window. If they were deferred and armed again, they
// would fall behind by a second or so each time.
func TestWorker_SendsWindowApart(t *testing.T) {
	t.Parallel()
	const takes, window = 20 * time.Millisecond, time.Second
	policy := quota.Policy{{Name: "second", Limit: 1, Window: window}}
	d := setup(t, policy)
	d.answer = func(context.Context, push.Push, int) channel.Result {
		time.Sleep(takes)
		return channel.Result{Outcome: push.Delivered}
	}
	var pushes []push.Push
	first := thisSecond().Add(time.Second)
	for i := range 4 {
		pushes = append(pushes, d.book(t, "anna", "log", first.Add(time.Duration(i)*window)))
	}
	if err := d.Handle(t.Context(), push.WakeUp{Lane: all, At: first}); err != nil { // one wake-up, for the first of them
		t.Fatal(err)
	}
	eventually(t, "all are sent", func() bool { return d.read(t, pushes[3].ID).Status == push.Sent })
	for i, p := range pushes {
		got := d.read(t, p.ID)
		if got.Status != push.Sent {
			t.Fatalf("push %d: %+v", i, got)
		}
		if late := got.Sends[0].StartedAt.Sub(p.SendAt); late < 0 {
			t.Errorf("push %d came %s early", i, -late)
		}
	}
	if d.metrics.putOff != 0 {
		t.Errorf("%d were put off", d.metrics.putOff)
	}
	d.audit(t, policy)
}

// One recipient's backlog drains in order, with many concurrent handlers, and never faster than the policy.
func TestWorker_BacklogOrder(t *testing.T) {
	t.Parallel()
	policy := quota.Policy{{Name: "a", Limit: 1, Window: 100 * time.Millisecond}, {Name: "b", Limit: 3, Window: 600 * time.Millisecond}}
	d := setup(t, policy)
	var want []uuid.UUID
	for i := range 10 {
		want = append(want, d.book(t, "anna", "log", thisSecond().Add(time.Duration(i-600)*time.Second)).ID)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() { d.handle(t) })
	}
	wg.Wait()
	eventually(t, "all are sent", func() bool { return d.read(t, want[9]).Status == push.Sent })
	var got []uuid.UUID
	for _, s := range d.all() {
		got = append(got, s.push.ID)
	}
	if !slices.Equal(got, want) {
		t.Errorf("sent %v, want %v", got, want)
	}
	d.audit(t, policy)
	inWindows(t, policy, d.all())
}

// inWindows checks the policy by the provider's clock, not the store's.
func inWindows(t *testing.T, policy quota.Policy, sends []taken) {
	t.Helper()
	for _, r := range policy {
		for i := r.Limit; i < len(sends); i++ {
			if in := sends[i].at.Sub(sends[i-r.Limit].at); in < r.Window {
				t.Errorf("%d sends within %s (rule %s)", r.Limit+1, in, r.Name)
			}
		}
	}
}

// After an unknown outcome the next push waits a window; after a refused one it does not.
func TestWorker_UnknownOutcomesCount(t *testing.T) {
	t.Parallel()
	for outcome, window := range map[push.Outcome]time.Duration{push.Unknown: time.Second, push.Refused: time.Hour} {
		t.Run(string(outcome), func(t *testing.T) {
			t.Parallel()
			d := setup(t, quota.Policy{{Name: "a", Limit: 1, Window: window}})
			d.answer = func(_ context.Context, p push.Push, _ int) channel.Result {
				if p.SendAt.Before(thisSecond().Add(-30 * time.Second)) {
					return channel.Result{Outcome: outcome, Error: "trouble"}
				}
				return channel.Result{Outcome: push.Delivered}
			}
			d.book(t, "anna", "log", thisSecond().Add(-time.Minute))
			d.book(t, "anna", "log", thisSecond())
			d.handle(t)
			d.sentEventually(t, 2)
			sends := d.all()
			if gap := sends[1].at.Sub(sends[0].at); outcome == push.Unknown && gap < window {
				t.Errorf("the next one came %s later", gap)
			}
		})
	}
}

// A push that the gate defers for long is left to its next wake-up, which the worker requests.
func TestWorker_DeferredPush(t *testing.T) {
	t.Parallel()
	d := setup(t, quota.Policy{{Name: "minute", Limit: 1, Window: time.Minute}})
	first := d.book(t, "anna", "log", thisSecond().Add(-time.Minute))
	second := d.book(t, "anna", "log", thisSecond())
	third := d.book(t, "anna", "log", thisSecond())
	d.handle(t)
	if n := len(d.all()); n != 1 || d.metrics.putOff != 2 {
		t.Errorf("%d were sent, %d put off", n, d.metrics.putOff)
	}
	if in, asked := d.waker.of(d.tenant, "anna"); !asked || in > time.Minute || in < 50*time.Second {
		t.Errorf("woken again: %v, in %s", asked, in)
	}
	sent := d.read(t, first.ID).Sends[0]
	for _, p := range []push.Push{second, third} {
		if next := d.read(t, p.ID).NextAt.Add(-time.Minute); next.Before(sent.StartedAt) || next.After(sent.EndedAt) {
			t.Errorf("put off to a minute after %s, want after %s to %s", next, sent.StartedAt, sent.EndedAt)
		}
	}
}
