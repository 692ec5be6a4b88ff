package delivery_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/channel"
	"github.com/sendquota/sendquota/internal/delivery"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/internal/testenv"
)

// Many concurrent wake-ups, for all lanes, send each push once, and each recipient's in order.
func TestHandle_ManyWakeUps(t *testing.T) {
	t.Parallel()
	d := setup(t, nil)
	const recipients, each = 100, 3
	for n := range each {
		d.bookAll(t, "log", thisSecond().Add(time.Duration(n-10)*time.Second), names("r", recipients)...)
	}
	var wg sync.WaitGroup
	for part := range 5 {
		for _, l := range push.Lanes(8) {
			wg.Go(func() {
				if err := d.Handle(t.Context(), push.WakeUp{Lane: l, Part: part}); err != nil {
					t.Error(err)
				}
			})
		}
	}
	wg.Wait()
	d.sentEventually(t, recipients*each)
	d.Settle()
	last := map[string]time.Time{}
	for _, s := range d.all() {
		if !s.push.SendAt.After(last[s.push.Recipient]) {
			t.Errorf("%s got the push of %s after the push of %s", s.push.Recipient, s.push.SendAt, last[s.push.Recipient])
		}
		last[s.push.Recipient] = s.push.SendAt
	}
	if n := len(d.all()); n != recipients*each {
		t.Errorf("%d were sent", n)
	}
	d.audit(t, nil)
}

// TestHandle_OtherLanes: while delivery.lanes is changed, workers with different lanes handle wake-ups for each other's
// lanes. Each push is sent once.
func TestHandle_OtherLanes(t *testing.T) {
	t.Parallel()
	url, _ := stores.Take(t)
	opened := map[int]*store.Store{}
	for _, lanes := range []int{4, 16, 256} {
		st, err := store.Open(t.Context(), url, store.Config{Channels: stores.Config.Channels, Lanes: lanes, Timeout: testenv.StoreTimeout, ReadTimeout: testenv.StoreTimeout})
		testenv.Check(t, err)
		t.Cleanup(st.Close)
		opened[lanes] = st
	}
	for _, n := range [][2]int{{4, 16}, {16, 4}, {4, 256}, {256, 4}} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			d := setupOn(t, opened[n[0]], nil)
			other := delivery.New(opened[n[1]], d.cache, channels(t, d.provider), d.waker, quiet, d.metrics, delivery.Config{Lease: 20 * time.Second, Concurrency: 2})
			const recipients, each = 30, 2
			for at := range each {
				d.bookAll(t, "log", thisSecond().Add(time.Duration(at-10)*time.Second), names("r", recipients)...)
			}
			var all sync.WaitGroup
			handle := func(w *delivery.Worker, lanes []push.Lane) {
				for _, l := range lanes {
					all.Go(func() {
						if err := w.Handle(t.Context(), push.WakeUp{Lane: l}); err != nil {
							t.Error(err)
						}
					})
				}
			}
			handle(other, push.Lanes(n[0]))
			handle(d.Worker, push.Lanes(n[1])[:n[1]/2])
			all.Wait()
			d.sentEventually(t, recipients*each)
			d.Settle()
			other.Settle()
			if n := len(d.all()); n != recipients*each {
				t.Errorf("%d were sent", n)
			}
			d.audit(t, nil)
		})
	}
}

// A handler sends what is in its lane only.
func TestHandle_OwnLane(t *testing.T) {
	t.Parallel()
	d := setup(t, nil)
	const recipients = 40
	d.bookAll(t, "log", thisSecond(), names("r", recipients)...)
	sent := 0
	for _, l := range push.Lanes(4) {
		if err := d.Handle(t.Context(), push.WakeUp{Lane: l}); err != nil {
			t.Fatal(err)
		}
		d.Settle()
		for _, s := range d.all()[sent:] {
			if shard := push.Shard(push.RecipientKey(d.tenant, s.push.Recipient)); shard < l.First || shard > l.Last {
				t.Errorf("lane %s: %s is in shard %d", l, s.push.Recipient, shard)
			}
		}
		if len(d.all()) == sent {
			t.Errorf("lane %s: nothing is sent", l)
		}
		sent = len(d.all())
	}
	if sent != recipients {
		t.Errorf("%d were sent", sent)
	}
}

// A wake-up that comes while a handler is at work returns at once, and what has become due since is sent.
func TestHandle_WhileAtWork(t *testing.T) {
	t.Parallel()
	d := setup(t, nil)
	sending, answer := make(chan struct{}, 10), make(chan struct{})
	d.answer = func(context.Context, push.Push, int) channel.Result {
		sending <- struct{}{}
		<-answer
		return channel.Result{Outcome: push.Delivered}
	}
	for i := range 3 { // one more than there are slots: the handler waits for one
		d.book(t, fmt.Sprint("r", i), "log", thisSecond())
	}
	done := make(chan error, 1)
	go func() { done <- d.Handle(t.Context(), push.WakeUp{Lane: all}) }()
	<-sending
	<-sending
	d.book(t, "late", "log", thisSecond())
	if err := d.Handle(t.Context(), push.WakeUp{Lane: all}); err != nil {
		t.Error(err)
	}
	close(answer)
	if err := <-done; err != nil {
		t.Error(err)
	}
	d.sentEventually(t, 4)
}

// While more is due than a worker has slots for, it wakes others, but not all the time.
func TestHandle_WakesHelpers(t *testing.T) {
	t.Parallel()
	d := setup(t, nil)
	d.answer = func(ctx context.Context, _ push.Push, _ int) channel.Result {
		for d.waker.count() == 0 && ctx.Err() == nil { // so both slots are in use until then
			time.Sleep(time.Millisecond)
		}
		return channel.Result{Outcome: push.Delivered}
	}
	d.bookAll(t, "log", thisSecond(), names("r", 20)...)
	began := time.Now()
	d.handle(t)
	if n := d.waker.count(); n < 1 || n > 1+int(time.Since(began)/time.Second) {
		t.Errorf("workers were woken %d times within %s for 20 pushes and two slots", n, time.Since(began))
	}
}

// A recipient whose attempt is under way has its next push sent when that ends, however many wake-ups find it busy.
func TestHandle_BusyRecipient(t *testing.T) {
	t.Parallel()
	d := setup(t, quota.Policy{})
	sending, answer := make(chan struct{}, 10), make(chan struct{})
	d.answer = func(context.Context, push.Push, int) channel.Result {
		sending <- struct{}{}
		<-answer
		return channel.Result{Outcome: push.Delivered}
	}
	d.book(t, "anna", "log", thisSecond().Add(-time.Second))
	if err := d.Handle(t.Context(), push.WakeUp{Lane: all}); err != nil {
		t.Fatal(err)
	}
	<-sending
	d.book(t, "anna", "log", thisSecond())
	for range 3 {
		if err := d.Handle(t.Context(), push.WakeUp{Lane: all}); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(d.all()); n != 1 {
		t.Fatalf("%d attempts at a time", n)
	}
	close(answer)
	d.sentEventually(t, 2)
	d.audit(t, nil)
}
