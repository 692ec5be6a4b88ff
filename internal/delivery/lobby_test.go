package delivery_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/channel"
	"github.com/sendquota/sendquota/internal/delivery"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
)

// lobby opens one in front of a depot, with two places.
func (d *depot) lobby(t *testing.T) (l *delivery.Lobby, closes func()) {
	t.Helper()
	l = delivery.NewLobby(d.Deliverer, d.store, quiet)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	return l, func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

func (d *depot) sentEventually(t *testing.T, n int) {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); len(d.all()) < n; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d were sent", len(d.all()), n)
		}
	}
}

// TestWhoWaitsHoldsNoPlace: forty recipients have three pushes each that are
// due, a second apart. If they waited at the two places, only two of them would
// have been sent anything when one has got all three.
func TestWhoWaitsHoldsNoPlace(t *testing.T) {
	t.Parallel()
	const recipients = 40
	policy := quota.Policy{{Name: "second", Limit: 1, Window: time.Second}}
	d := open(t, policy)
	for i := range recipients {
		for n := range 3 {
			d.book(t, fmt.Sprint("r", i), "log", thisSecond().Add(time.Duration(n-10)*time.Second))
		}
	}
	l, closes := d.lobby(t)
	defer closes()
	for i := range recipients {
		if err := l.Handle(t.Context(), d.wakeUp(fmt.Sprint("r", i))); err != nil {
			t.Error(err)
		}
	}
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
	if d.seen.deferred != 0 {
		t.Errorf("%d were put off", d.seen.deferred)
	}
	d.audit(t, policy)
}

// TestALobbyThatClosesDuringAnAttempt: the attempt is carried to its end, and
// what comes after it is for others, at once.
func TestALobbyThatClosesDuringAnAttempt(t *testing.T) {
	t.Parallel()
	d := open(t, quota.Policy{{Name: "second", Limit: 1, Window: 1900 * time.Millisecond}})
	sending, answer := make(chan struct{}, 3), make(chan struct{}, 3)
	d.answer = func(context.Context, push.Push, int) channel.Result {
		sending <- struct{}{}
		<-answer
		return channel.Result{Outcome: push.Delivered}
	}
	for n := range 3 {
		d.book(t, "anna", "log", thisSecond().Add(time.Duration(n-10)*time.Second))
	}
	arm := func([]push.WakeUp) error { return nil }
	if _, err := d.store.Promote(t.Context(), time.Minute, time.Minute, 10, nil, arm); err != nil {
		t.Fatal(err)
	}
	l, closes := d.lobby(t)
	answer <- struct{}{}
	if err := l.Handle(t.Context(), d.wakeUp("anna")); err != nil {
		t.Fatal(err)
	}
	<-sending
	<-sending // the second, out of the lobby
	closed := make(chan struct{})
	go func() { closes(); close(closed) }()
	select {
	case <-closed:
		t.Error("it closed while an attempt was under way")
	case <-time.After(50 * time.Millisecond): // it may not, so this is what can be waited for
	}
	answer <- struct{}{}
	<-closed
	d.sentEventually(t, 2)
	if n, err := d.store.Promote(t.Context(), time.Minute, time.Minute, 10, nil, arm); n != 1 || err != nil {
		t.Errorf("%d are to be armed again, %v; want the third", n, err)
	}
}

// TestAClosedLobbyLeavesNobodyWaiting: who sits there is armed again by others,
// and who comes is sent away until then.
func TestAClosedLobbyLeavesNobodyWaiting(t *testing.T) {
	t.Parallel()
	d := open(t, quota.Policy{{Name: "second", Limit: 1, Window: 1900 * time.Millisecond}})
	d.answer = func(context.Context, push.Push, int) channel.Result { return channel.Result{Outcome: push.Delivered} }
	for _, who := range []string{"anna", "bert"} {
		for n := range 2 {
			d.book(t, who, "log", thisSecond().Add(time.Duration(n-10)*time.Second))
		}
	}
	promote := func() (n int) {
		t.Helper()
		n, err := d.store.Promote(t.Context(), time.Minute, time.Minute, 10, nil, func([]push.WakeUp) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	l, closes := d.lobby(t)
	promote()
	if err := l.Handle(t.Context(), d.wakeUp("anna")); err != nil || len(d.all()) != 1 || promote() != 0 {
		t.Fatalf("%v, sent %d", err, len(d.all()))
	}
	closes()
	if n := promote(); n != 1 {
		t.Errorf("%d are to be armed again, want what waited in the lobby", n)
	}
	var early push.Early
	if err := l.Handle(t.Context(), d.wakeUp("bert")); !errors.As(err, &early) || early.In > 2*time.Second {
		t.Errorf("who came then was told %v", err)
	}
	if n := len(d.all()); n != 2 {
		t.Errorf("%d were sent, want the first of each", n)
	}
}
