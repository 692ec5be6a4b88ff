package delivery_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/channel"
	"github.com/sendquota/sendquota/internal/delivery"
	"github.com/sendquota/sendquota/internal/pace"
	"github.com/sendquota/sendquota/internal/push"
)

// A worker that owns no lane and finds a provider down tries again when it is woken, and continues when the provider is
// back: the recipients of the woken lane wait in its queue.
func TestHandle_BreakerWithoutLanes(t *testing.T) {
	t.Parallel()
	f := setupWorkers(t, 1, pace.Speed{}, withoutLanes)
	var down atomic.Bool
	down.Store(true)
	f.sms.answer = func(context.Context, push.Push, int) channel.Result {
		if down.Load() {
			return channel.Result{Outcome: push.Refused, Down: true, Error: "no connection: connection refused"}
		}
		return channel.Result{Outcome: push.Delivered}
	}
	f.bookAll(t, "sms", thisSecond().Add(-10*time.Second), names("first", 10)...)
	eventually(t, "the breaker opens", func() bool { // for a moment, which a busy machine may miss: then it is tried again
		f.wake(t)
		return f.holds(0)
	})
	down.Store(false)
	f.bookAll(t, "sms", thisSecond().Add(-time.Second), names("r", 50)...)
	f.wake(t) // once
	eventually(t, "those that were due are sent", func() bool { return len(f.sms.all()) >= 60 })
}

// While a channel has all its slots in use, lanes with more due pushes are processed again, in turn, when attempts end:
// one lane's backlog does not keep the slots from another's.
func TestHandle_LimitedLanesTakeTurns(t *testing.T) {
	t.Parallel()
	f := setupWorkers(t, 1, pace.Speed{}, withoutLanes)
	end := make(chan struct{}) // an attempt ends for each element
	f.sms.answer = func(context.Context, push.Push, int) channel.Result {
		<-end
		return channel.Result{Outcome: push.Delivered}
	}
	const each = 40
	var recipients []string
	inLane := map[push.Lane]int{}
	for i := 0; len(inLane) < 4 || !everyIs(inLane, each); i++ {
		recipient := fmt.Sprint("r", i)
		if l := push.LaneOf(push.Lanes(4), push.RecipientKey(f.tenant, recipient)); inLane[l] < each {
			inLane[l]++
			recipients = append(recipients, recipient)
		}
	}
	f.bookAll(t, "sms", thisSecond().Add(-time.Second), recipients...)
	f.wake(t) // once for each lane
	slots := len(f.sms.all())
	for begun := slots; begun < 2*each; begun++ {
		end <- struct{}{}
		eventually(t, "another attempt begins when one ends", func() bool { return len(f.sms.all()) > begun })
	}
	first := map[push.Lane]int{}
	for _, s := range f.sms.all()[slots : 2*each] {
		first[push.LaneOf(push.Lanes(4), push.RecipientKey(f.tenant, s.push.Recipient))]++
	}
	if most := (2*each - slots + 3) / 4; len(first) != 4 || slices.Max(slices.Collect(maps.Values(first))) > most {
		t.Errorf("the lanes had %v of the slots that became free", first)
	}
	close(end)
	eventually(t, "all are sent", func() bool { return len(f.sms.all()) == 4*each })
}

func everyIs(n map[push.Lane]int, want int) bool {
	for _, got := range n {
		if got != want {
			return false
		}
	}
	return true
}

// Pushes through a hung channel are not claimed for the slots of another, although their recipients have a newer push for
// that one.
func TestHandle_HungChannel(t *testing.T) {
	t.Parallel()
	f := setupWorkers(t, 1, pace.Speed{}, withoutLanes)
	release := make(chan struct{})
	defer close(release)
	f.sms.answer = func(context.Context, push.Push, int) channel.Result {
		<-release
		return channel.Result{Outcome: push.Delivered}
	}
	f.bookAll(t, "sms", thisSecond().Add(-20*time.Second), names("r", 30)...)
	f.wake(t)
	eventually(t, "the provider has what it may have", func() bool { return len(f.sms.all()) >= 7 })
	f.bookAll(t, "log", thisSecond().Add(-10*time.Second), names("r", 30)...)
	f.wake(t)
	eventually(t, "log is sent to those who wait for no sms", func() bool { return len(f.all()) >= 20 })
	if n := len(f.sms.all()); n > 9 {
		t.Errorf("the hung provider has %d of ten slots", n)
	}
}

// While the last slot of a worker is not for a hung channel, the worker does not search a lane full of pushes for that
// channel forever, and another channel's push between them is sent.
func TestHandle_LastSlot(t *testing.T) {
	t.Parallel()
	f := setupWorkers(t, 1, pace.Speed{}, withoutLanes)
	release := make(chan struct{})
	defer close(release)
	f.sms.answer = func(context.Context, push.Push, int) channel.Result {
		<-release
		return channel.Result{Outcome: push.Delivered}
	}
	due := thisSecond().Add(-time.Second) // the same for all
	f.bookAll(t, "sms", due, names("r", 100)...)
	f.book(t, "anna", "log", due)
	handled := make(chan error, 1)
	go func() { handled <- f.workers[0].Handle(context.WithoutCancel(t.Context()), push.WakeUp{Lane: all}) }()
	eventually(t, "log is sent while sms hangs", func() bool { return len(f.all()) == 1 })
	if err := <-handled; err != nil {
		t.Error(err)
	}
	f.book(t, "bert", "log", due)
	go func() { handled <- f.workers[0].Handle(context.WithoutCancel(t.Context()), push.WakeUp{Lane: all}) }()
	eventually(t, "log is sent in the last slot", func() bool { return len(f.all()) == 2 })
	if err := <-handled; err != nil {
		t.Error(err)
	}
}

// endless is a store that always has due pushes, and none can be sent.
type endless struct {
	scripted
	from chan time.Time // of each search
}

func (e *endless) Due(_ context.Context, o booking.DueOrder) (due []booking.Due, now time.Time, err error) {
	select {
	case e.from <- o.From:
	default:
	}
	time.Sleep(time.Millisecond)
	for i := range o.Most {
		due = append(due, booking.Due{RecipientKey: int64(len(o.Without) + i), Channel: "log"})
	}
	return due, time.Now(), nil
}

func (e *endless) ClaimAll(_ context.Context, orders []booking.ClaimOrder) ([]booking.Claim, error) {
	return make([]booking.Claim, len(orders)), nil // Nothing
}

// However much is due, a wake-up for an older time is handled soon.
func TestHandle_NeverDry(t *testing.T) {
	t.Parallel()
	e := &endless{from: make(chan time.Time, 100_000)}
	w := setupStore(t, e, &provider{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	recent, old := time.Now(), time.Now().Add(-time.Hour)
	go func() { done <- w.Handle(ctx, push.WakeUp{Lane: all, At: recent}) }()
	<-e.from
	if err := w.Handle(ctx, push.WakeUp{Lane: all, At: old}); err != nil {
		t.Fatal(err)
	}
	for deadline := time.After(time.Minute); ; {
		select {
		case from := <-e.from:
			if !from.After(old) {
				cancel()
				<-done
				return
			}
		case <-deadline:
			t.Fatal("the older wake-up is not followed")
		}
	}
}

// withoutLanes configures workers that own no lanes.
func withoutLanes(c *delivery.Config) { c.Lanes = nil }
