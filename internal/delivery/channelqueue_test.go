package delivery

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/channel"
	"github.com/sendquota/sendquota/internal/pace"
	"github.com/sendquota/sendquota/internal/push"
)

// steady is a pacer that gives one send time after another.
type steady struct{}

func (steady) Take(_ context.Context, o pace.Order) pace.Slots {
	return pace.Slots{Taken: 1, Wait: o.Speed.Every}
}
func (steady) Charge(context.Context, string, pace.Speed, int)         {}
func (steady) Pause(context.Context, string, uuid.UUID, time.Duration) {}
func (steady) Forget(string, pace.Speed)                               {}
func (steady) Run(context.Context, []string, func(string, uuid.UUID, time.Duration)) error {
	return nil
}

// While no attempt uses its permit, as when Postgres hangs, a queue gives permits for a tenth of a second only.
func TestChannelQueue_UnusedPermits(t *testing.T) {
	for name, row := range map[string]struct {
		speed pace.Speed
		most  int
	}{"slow": {pace.PerSpan(10, time.Second, 1), 1}, "fast": {pace.PerSpan(100, time.Second, 1), 10}, "in bursts": {pace.PerSpan(10, time.Second, 5), 5}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := newChannelQueue(channel.Entry{Name: "sms", Speed: row.speed, Retry: push.Retry{First: time.Second, Max: time.Second}}, newSlots(1000, 1))
				for i := range 100 {
					q.add(booking.Due{RecipientKey: int64(i)})
				}
				ctx, stop := context.WithCancel(t.Context())
				given, stopped := 0, make(chan struct{})
				go func() { q.run(ctx, steady{}, func() { given++ }); close(stopped) }()
				time.Sleep(10 * time.Second)
				synctest.Wait()
				if given != row.most {
					t.Errorf("%d permits are unused, want %d", given, row.most)
				}
				q.count(-1, -1) // one is used
				time.Sleep(10 * time.Second)
				synctest.Wait()
				if given != row.most+1 {
					t.Errorf("%d permits were given, want one more than %d", given, row.most)
				}
				stop()
				<-stopped
			})
		})
	}
}

// A recipient that is found again keeps its place, and can be added again once it has
// been taken out.
func TestChannelQueue_NoDuplicates(t *testing.T) {
	t.Parallel()
	q := newChannelQueue(channel.Entry{Name: "sms", Retry: push.Retry{First: time.Second, Max: time.Second}}, newSlots(1000, 1))
	began := time.Now()
	for i := range 3 {
		q.add(booking.Due{RecipientKey: 1, At: began.Add(time.Duration(i))})
	}
	q.add(booking.Due{RecipientKey: 2, At: began.Add(time.Second)})
	if n := q.len(); n != 2 {
		t.Errorf("%d are in the queue, want 2", n)
	}
	for want := range int64(2) {
		if w, _ := q.next(); w.RecipientKey != want+1 {
			t.Errorf("%d comes, want %d", w.RecipientKey, want+1)
		}
	}
	if q.add(booking.Due{RecipientKey: 1}); q.len() != 1 {
		t.Error("a recipient that was taken out cannot be added again")
	}
}

// While a provider comes back, the order is random; otherwise the longest due comes first.
func TestChannelQueue_Order(t *testing.T) {
	t.Parallel()
	q := newChannelQueue(channel.Entry{Name: "sms", Retry: push.Retry{First: time.Second, Max: time.Second}}, newSlots(1000, 1))
	began := time.Now()
	for i := range 100 {
		q.add(booking.Due{RecipientKey: int64(i), At: began.Add(time.Duration(i))})
	}
	for want := range int64(10) {
		if w, _ := q.next(); w.RecipientKey != want {
			t.Errorf("%d comes, want %d", w.RecipientKey, want)
		}
	}
	q.hold(uuid.Nil, 0)
	others := 0
	for range 6 { // one, two, four and so on at a time, until the tenant is trusted
		w, ok := q.next()
		if !ok {
			t.Error("none comes")
		}
		if q.report(uuid.Nil, false); w.RecipientKey > 30 {
			others++
		}
	}
	if others == 0 {
		t.Error("the longest due are tried first, always")
	}
}

// A permit that was given before a pause begins is not used during the pause.
func TestChannelQueue_PauseVoidsPermits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newChannelQueue(channel.Entry{Name: "sms", Retry: push.Retry{First: time.Second, Max: time.Second}}, newSlots(1000, 1))
		q.add(booking.Due{RecipientKey: 1})
		q.hold(uuid.Nil, time.Minute)
		if d, ok := q.next(); ok {
			t.Errorf("recipient %d is taken", d.RecipientKey)
		}
		time.Sleep(time.Minute)
		if _, ok := q.next(); !ok {
			t.Error("it is not taken when the pause is over")
		}
	})
}

func TestSlots(t *testing.T) {
	t.Parallel()
	shared := newSlots(40, 3) // three each of their own, and 31 for all
	var qs []*channelQueue
	for _, name := range []string{"a", "b", "c"} {
		qs = append(qs, newChannelQueue(channel.Entry{Name: name, Retry: push.Retry{First: time.Second, Max: time.Second}}, shared))
	}
	take := func(i, want int) {
		t.Helper()
		n := 0
		for qs[i].tryOccupy() {
			n++
		}
		if n != want {
			t.Errorf("channel %d gets %d slots, want %d", i, n, want)
		}
	}
	qs[1].tryOccupy()
	take(0, 34)
	take(1, 2)
	take(2, 3)
	for range 34 {
		qs[0].count(-1, 0)
	}
	take(2, 31)
	take(0, 3)
}
