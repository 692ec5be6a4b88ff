package delivery_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/channel"
	"github.com/sendquota/sendquota/internal/delivery"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/testenv"
)

// Many wake-ups at once, for all lanes, send each push once, and each recipient's in order.
func TestHandle_ManyWakeUps(t *testing.T) {
	t.Parallel()
	d := setup(t, nil)
	const recipients, each = 100, 3
	for i := range recipients {
		for n := range each {
			d.book(t, fmt.Sprint("r", i), "log", thisSecond().Add(time.Duration(n-10)*time.Second))
		}
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
			t.Errorf("%s got the push of %s after that of %s", s.push.Recipient, s.push.SendAt, last[s.push.Recipient])
		}
		last[s.push.Recipient] = s.push.SendAt
	}
	if n := len(d.all()); n != recipients*each {
		t.Errorf("%d were sent", n)
	}
	d.audit(t, nil)
}

// TestHandle_OtherLanes: while delivery.lanes is changed, workers that divide the shards in one way follow wake-ups for lanes of the
// others. Each push is sent once.
func TestHandle_OtherLanes(t *testing.T) {
	t.Parallel()
	for _, n := range [][2]int{{4, 16}, {16, 4}, {4, 256}, {256, 4}} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			url := testenv.Postgres(t)
			d := setupOn(t, open(t, url, n[0]), nil)
			other := delivery.New(open(t, url, n[1]), d.cache, channels(t, d.provider), d.waker, quiet, d.metrics, delivery.Config{Lease: 20 * time.Second, Concurrency: 2})
			const recipients, each = 50, 2
			for i := range recipients {
				for at := range each {
					d.book(t, fmt.Sprint("r", i), "log", thisSecond().Add(time.Duration(at-10)*time.Second))
				}
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
	for i := range recipients {
		d.book(t, fmt.Sprint("r", i), "log", thisSecond())
	}
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
	var wakes atomic.Int64
	d.answer = func(context.Context, push.Push, int) channel.Result {
		d.waker.mu.Lock()
		wakes.Store(int64(len(d.waker.asks)))
		d.waker.mu.Unlock()
		return channel.Result{Outcome: push.Delivered}
	}
	for i := range 20 {
		d.book(t, fmt.Sprint("r", i), "log", thisSecond())
	}
	d.handle(t)
	if n := wakes.Load(); n < 1 || n > 5 {
		t.Errorf("workers were woken %d times for 20 pushes and two slots", n)
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
