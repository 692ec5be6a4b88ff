package delivery

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sendquota/sendquota/internal/channel"
	"github.com/sendquota/sendquota/internal/pace"
	"github.com/sendquota/sendquota/internal/push"
)

// everySlot is a pacer with one slot after another.
type everySlot struct{}

func (everySlot) Take(_ context.Context, _ string, s pace.Speed, _ int) (int, time.Duration) {
	return 1, s.Every
}
func (everySlot) Pause(context.Context, string, time.Duration)                     {}
func (everySlot) Run(context.Context, []string, func(string, time.Duration)) error { return nil }

// TestTurnsDoNotPileUp: while nobody gets as far as to use a turn, as when
// Postgres stands still, no more are given than those of a tenth of a second.
func TestTurnsDoNotPileUp(t *testing.T) {
	for name, row := range map[string]struct {
		speed pace.Speed
		most  int
	}{"slow": {pace.PerSpan(10, time.Second, 1), 1}, "fast": {pace.PerSpan(100, time.Second, 1), 10}, "in bursts": {pace.PerSpan(10, time.Second, 5), 5}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLine(channel.Entry{Name: "sms", Speed: row.speed, Retry: push.Retry{First: time.Second, Max: time.Second}}, newPlaces(1000, 1))
				for i := range 100 {
					l.join(push.WakeUp{RecipientKey: int64(i)})
				}
				ctx, stop := context.WithCancel(t.Context())
				given, stopped := 0, make(chan struct{})
				go func() { l.run(ctx, everySlot{}, func() { given++ }); close(stopped) }()
				time.Sleep(10 * time.Second)
				synctest.Wait()
				if given != row.most {
					t.Errorf("%d turns wait to be used, want %d", given, row.most)
				}
				l.count(-1, -1) // one is used
				time.Sleep(10 * time.Second)
				synctest.Wait()
				if given != row.most+1 {
					t.Errorf("%d turns were given, want one more than %d", given, row.most)
				}
				stop()
				<-stopped
			})
		})
	}
}

// TestNobodyStandsTwice: a recipient that is woken again keeps its place, and
// gets in line again once it has had its turn.
func TestNobodyStandsTwice(t *testing.T) {
	t.Parallel()
	l := newLine(channel.Entry{Name: "sms", Retry: push.Retry{First: time.Second, Max: time.Second}}, newPlaces(1000, 1))
	began := time.Now()
	for i := range 3 {
		l.join(push.WakeUp{RecipientKey: 1, At: began.Add(time.Duration(i))})
	}
	l.join(push.WakeUp{RecipientKey: 2, At: began.Add(time.Second)})
	if n := l.len(); n != 2 {
		t.Errorf("%d stand in line, want 2", n)
	}
	for want := range int64(2) {
		if w, _ := l.next(); w.RecipientKey != want+1 {
			t.Errorf("%d comes, want %d", w.RecipientKey, want+1)
		}
	}
	if l.join(push.WakeUp{RecipientKey: 1}); l.len() != 1 {
		t.Error("who has had a turn gets no other")
	}
}

// TestAnybodyIsTried while a provider comes back, and the longest due otherwise.
func TestAnybodyIsTried(t *testing.T) {
	t.Parallel()
	l := newLine(channel.Entry{Name: "sms", Retry: push.Retry{First: time.Second, Max: time.Second}}, newPlaces(1000, 1))
	began := time.Now()
	for i := range 100 {
		l.join(push.WakeUp{RecipientKey: int64(i), At: began.Add(time.Duration(i))})
	}
	for want := range int64(10) {
		if w, _ := l.next(); w.RecipientKey != want {
			t.Errorf("%d comes, want %d", w.RecipientKey, want)
		}
	}
	l.hold(time.Minute)
	others := 0
	for first := int64(10); first < 30; first++ {
		if w, _ := l.next(); w.RecipientKey > 30 {
			others++
		}
	}
	if others == 0 {
		t.Error("the same are tried first, always")
	}
}

// TestPlaces: two providers that hang leave room for the third, and no channel
// takes another's own places.
func TestPlaces(t *testing.T) {
	t.Parallel()
	shared := newPlaces(40, 3) // three each of their own, and 31 for all
	var ls []*line
	for _, name := range []string{"a", "b", "c"} {
		ls = append(ls, newLine(channel.Entry{Name: name, Retry: push.Retry{First: time.Second, Max: time.Second}}, shared))
	}
	enter := func(i, want int) {
		t.Helper()
		n := 0
		for ls[i].enter() {
			n++
		}
		if n != want {
			t.Errorf("channel %d gets %d places, want %d", i, n, want)
		}
	}
	ls[1].enter()
	enter(0, 34)
	enter(1, 2)
	enter(2, 3)
	for range 34 {
		ls[0].count(-1, -1)
	}
	enter(2, 31)
	enter(0, 3)
}
