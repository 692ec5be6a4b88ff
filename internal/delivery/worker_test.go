package delivery_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/channel"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// run runs the worker until stop is called.
func (d *bundle) run(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- d.Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func (d *bundle) sentEventually(t *testing.T, n int) {
	t.Helper()
	eventually(t, fmt.Sprint(n, " are sent"), func() bool { return len(d.all()) >= n })
}

// Forty recipients have three pushes each that are due, a second apart. If they held the
// two slots while they wait, only two of them would have been sent anything when one has
// got all three.
func TestWorker_DelayedRecipientsHoldNoSlot(t *testing.T) {
	t.Parallel()
	const recipients = 40
	policy := quota.Policy{{Name: "second", Limit: 1, Window: time.Second}}
	d := setup(t, policy)
	for n := range 3 {
		d.bookAll(t, "log", thisSecond().Add(time.Duration(n-10)*time.Second), names("r", recipients)...)
	}
	defer d.run(t)()
	d.handle(t)
	d.sentEventually(t, 3*recipients)
	got := map[string]int{}
	for _, s := range d.all() {
		if got[s.push.Recipient]++; got[s.push.Recipient] == 3 {
			break
		}
	}
	if len(got) < 6 {
		t.Errorf("only %d recipients had been sent anything when one had got all", len(got))
	}
	if d.metrics.putOff != 0 {
		t.Errorf("%d were put off", d.metrics.putOff)
	}
	d.audit(t, policy)
}

// A worker that stops carries the attempt under way to its end, and leaves the
// recipient's next push to another worker at once.
func TestWorker_StopsDuringAttempt(t *testing.T) {
	t.Parallel()
	d := setup(t, quota.Policy{{Name: "second", Limit: 1, Window: 1900 * time.Millisecond}})
	sending, answer := make(chan struct{}, 3), make(chan struct{}, 3)
	d.answer = func(context.Context, push.Push, int) channel.Result {
		sending <- struct{}{}
		<-answer
		return channel.Result{Outcome: push.Delivered}
	}
	for n := range 3 {
		d.book(t, "anna", "log", thisSecond().Add(time.Duration(n-10)*time.Second))
	}
	stop := d.run(t)
	answer <- struct{}{}
	if err := d.Handle(t.Context(), push.WakeUp{Lane: all}); err != nil {
		t.Fatal(err)
	}
	<-sending
	<-sending // the second, which was delayed
	stopped := make(chan struct{})
	go func() { stop(); close(stopped) }()
	select {
	case <-stopped:
		t.Error("it stopped while an attempt was under way")
	case <-time.After(50 * time.Millisecond): // it may not, so this is what can be waited for
	}
	answer <- struct{}{}
	<-stopped
	d.sentEventually(t, 2)
}

// A worker that stopped has other workers woken for its delayed recipients and early wake-ups, and hands back the
// wake-ups that still come.
func TestWorker_StoppedDelaysNothing(t *testing.T) {
	t.Parallel()
	var (
		d     *bundle
		early time.Time
	)
	for try := 1; ; try++ { // until the second push is still delayed when the worker stops
		d = setup(t, quota.Policy{{Name: "second", Limit: 1, Window: 1900 * time.Millisecond}})
		d.answer = func(context.Context, push.Push, int) channel.Result { return channel.Result{Outcome: push.Delivered} }
		for n := range 2 {
			d.book(t, "anna", "log", thisSecond().Add(time.Duration(n-10)*time.Second))
		}
		stop := d.run(t)
		d.handle(t)
		early = time.Now().Add(time.Minute)
		if err := d.Handle(t.Context(), push.WakeUp{Lane: push.Lane{First: 7, Last: 7}, At: early}); err != nil {
			t.Fatal(err)
		}
		stop()
		if n := len(d.all()); n == 1 {
			break
		} else if try == 10 {
			t.Fatalf("sent %d", n)
		}
	}
	if in, asked := d.waker.of(d.tenant, "anna"); !asked || in > 0 {
		t.Errorf("woken for the delayed one: %v, in %s", asked, in)
	}
	if in := d.waker.asks[7]; in < time.Until(early) || in > time.Minute {
		t.Errorf("woken for the early wake-up in %s", in)
	}
	d.book(t, "bert", "log", thisSecond())
	for _, at := range []time.Time{{}, time.Now().Add(time.Second)} {
		if err := d.Handle(t.Context(), push.WakeUp{Lane: all, At: at}); !errors.As(err, new(push.ComeAgain)) {
			t.Errorf("a wake-up that came then was answered with %v", err)
		}
	}
	if n := len(d.all()); n != 1 {
		t.Errorf("%d were sent, want the first", n)
	}
}
