package queue

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sendquota/sendquota/internal/push"
)

const horizon = 90 * time.Second

var errFailed = errors.New("it failed")

// arming is a call of Arm.
type arming struct {
	begun, ended time.Time
	wakeUps      []push.WakeUp
	err          error
}

// recorder is an armer that takes some time and may fail.
type recorder struct {
	takes func() time.Duration // nil: none
	fails func() error         // nil: never

	mu      sync.Mutex
	armings []arming
}

func (r *recorder) Arm(ctx context.Context, wakeUps []push.WakeUp) error {
	a := arming{begun: time.Now(), wakeUps: wakeUps}
	if r.takes != nil {
		select {
		case <-time.After(r.takes()):
		case <-ctx.Done():
			a.err = ctx.Err()
		}
	}
	if a.err == nil && r.fails != nil {
		a.err = r.fails()
	}
	a.ended = time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.armings = append(r.armings, a)
	return a.err
}

// all waits until no moment is noted, and returns all armings.
func (r *recorder) all(t *testing.T, w *Waker) []arming {
	t.Helper()
	if err := w.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.armings)
}

func newWaker(r *recorder, lanes int) (*Waker, *bytes.Buffer) {
	var text bytes.Buffer
	return NewWaker(r, push.Lanes(lanes), horizon, slog.New(slog.NewTextHandler(&text, nil))), &text
}

// TestWaker_Gathers: thousands of calls a second cost at most 50 wake-ups a lane.
func TestWaker_Gathers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{takes: func() time.Duration { return time.Millisecond }}
		w, _ := newWaker(r, 4)
		at := time.Now().Add(time.Second)
		for i := range 1000 {
			for key := range int64(256) {
				w.Wake(key, at, time.Until(at))
			}
			if i%2 == 0 {
				time.Sleep(2 * time.Millisecond)
			}
		}
		armings := r.all(t, w)
		if n := len(armings); n < 40 || n > 51 {
			t.Errorf("%d armings in a second", n)
		}
		for i, a := range armings {
			if len(a.wakeUps) > 4 || i > 0 && len(a.wakeUps) != 4 {
				t.Errorf("%d wake-ups at once", len(a.wakeUps))
			}
			if i > 0 && a.begun.Sub(armings[i-1].ended) < 20*time.Millisecond {
				t.Errorf("a pause of %s", a.begun.Sub(armings[i-1].ended))
			}
		}
	})
}

// TestWaker_Moments: the moment of a push is the end of its tenth of a second. If the push is due now, it is the
// beginning of its tenth of a second, where the worker starts to search.
func TestWaker_Moments(t *testing.T) {
	second := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC) // by Postgres' clock, which is years ahead
	for _, c := range []struct{ now, at, want time.Duration }{
		{0, 0, 0},
		{30 * time.Millisecond, -time.Hour, -time.Hour},
		{230 * time.Millisecond, 120 * time.Millisecond, 100 * time.Millisecond},
		{230 * time.Millisecond, 230 * time.Millisecond, 200 * time.Millisecond},
		{0, 1, tenth},
		{0, tenth, tenth},
		{0, tenth + 1, 2 * tenth},
		{0, 12*time.Second + 345*time.Millisecond, 12*time.Second + 400*time.Millisecond},
		{0, 80 * time.Second, 80 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := &recorder{}
			w, _ := newWaker(r, 4)
			in := c.at - c.now
			w.Wake(-1, second.Add(c.at), in)
			want := push.WakeUp{Lane: push.Lane{First: 192, Last: 255}, At: second.Add(c.want), In: max(c.want-c.now, 0)}
			if in <= 0 {
				want.In = 0
			}
			if got := r.all(t, w); len(got) != 1 || len(got[0].wakeUps) != 1 || got[0].wakeUps[0] != want {
				t.Errorf("at %s, now %s: armed %+v, want %+v", c.at, c.now, got, want)
			}
		})
	}
}

// TestWaker_InShrinks: while a wake-up waits for its arming, its time comes nearer.
func TestWaker_InShrinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{takes: func() time.Duration { return 300 * time.Millisecond }}
		w, _ := newWaker(r, 1)
		at := time.Now().Add(10 * time.Second)
		w.Wake(1, time.Now(), 0)
		time.Sleep(tenth) // the arming of the first is under way
		w.Wake(1, at, time.Until(at))
		w.Wake(1, time.Now().Add(tenth), tenth)
		got := r.all(t, w)
		if len(got) != 2 || len(got[1].wakeUps) != 2 {
			t.Fatalf("%+v", got)
		}
		if soon, late := got[1].wakeUps[0], got[1].wakeUps[1]; soon.In != 0 || late.In != at.Sub(got[1].begun) {
			t.Errorf("%+v, %+v", soon, late)
		}
	})
}

// TestWaker_OncePerMoment: a moment more than a second ahead is armed once; a moment due at once is armed on each
// request.
func TestWaker_OncePerMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{}
		w, _ := newWaker(r, 4)
		at := time.Now().Add(30 * time.Second)
		ask := func() int {
			for _, key := range []int64{0, 64, 128, -1} { // one of each lane
				w.Wake(key, at, time.Until(at))
			}
			n := 0
			for _, a := range r.all(t, w) {
				n += len(a.wakeUps)
			}
			return n
		}
		for range 28 {
			if n := ask(); n != 4 {
				t.Fatalf("%d wake-ups for 4 lanes, %s ahead", n, time.Until(at))
			}
			time.Sleep(time.Second)
		}
		for range 30 {
			w.Wake(3, at.Add(-tenth/2), time.Until(at)-tenth/2) // another time in the same tenth of a second
		}
		if n := ask(); n != 4 {
			t.Errorf("%d wake-ups for 4 lanes", n)
		}
		time.Sleep(1500 * time.Millisecond) // less than a second ahead
		for i := range 5 {
			if n := ask(); n != 4+4*(i+1) {
				t.Errorf("asked for at once %d times, %d wake-ups were armed", i+1, n-4)
			}
		}
	})
}

// TestWaker_BesideArming: a moment that is due at once and requested during an arming is armed once more, because the
// worker woken by this arming may not see the push. A moment further ahead is not, unless this arming fails.
func TestWaker_BesideArming(t *testing.T) {
	for _, failure := range []error{nil, errFailed} {
		synctest.Test(t, func(t *testing.T) {
			failures := []error{nil, failure, nil, nil}
			r := &recorder{takes: func() time.Duration { return 300 * time.Millisecond }}
			r.fails = func() error { err := failures[0]; failures = failures[1:]; return err }
			w, _ := newWaker(r, 4)
			far, near := time.Now().Add(10*time.Second), time.Now().Add(900*time.Millisecond)
			w.Wake(255, far, time.Until(far)) // which both of the others wait for
			synctest.Wait()
			both := func() {
				w.Wake(1, far, time.Until(far))
				w.Wake(1, near, time.Until(near))
			}
			both()
			time.Sleep(4 * tenth)
			both()
			again := time.Now()
			got, want := r.all(t, w)[1:], 1
			if failure != nil {
				want = 2
			}
			if len(got) != 2 || len(got[0].wakeUps) != 2 || len(got[1].wakeUps) != want || !got[1].wakeUps[0].At.Equal(near) || got[1].begun.Before(again) {
				t.Errorf("the first fails with %v: %+v", failure, got)
			}
		})
	}
}

// TestWaker_SoonDuringArming: a moment that comes near during its arming is armed once more, whatever else is requested
// meanwhile.
func TestWaker_SoonDuringArming(t *testing.T) {
	for _, in := range [][]time.Duration{{soon}, {soon + 1, soon}, {soon, soon + 1}} {
		synctest.Test(t, func(t *testing.T) {
			r := &recorder{takes: func() time.Duration { return 300 * time.Millisecond }}
			w, _ := newWaker(r, 4)
			at := time.Now().Add(1200 * time.Millisecond)
			w.Wake(1, at, time.Until(at))
			time.Sleep(200 * time.Millisecond)
			for _, in := range in { // by Postgres' clock, read a moment apart
				w.Wake(1, at, in)
			}
			if got := r.all(t, w); len(got) != 2 {
				t.Errorf("%v: %+v", in, got)
			}
		})
	}
}

// TestWaker_BeyondHorizon: moments beyond the horizon are left to the lanes' owners, but not those within it a moment
// ago.
func TestWaker_BeyondHorizon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{}
		w, _ := newWaker(r, 4)
		for _, in := range []time.Duration{horizon + 6*time.Second, time.Hour, 365 * 24 * time.Hour} {
			w.Wake(1, time.Now().Add(in), in)
		}
		if got := r.all(t, w); len(got) != 0 {
			t.Errorf("armed %+v", got)
		}
		for _, in := range []time.Duration{horizon - time.Second, horizon, horizon + time.Second} {
			w.Wake(1, time.Now().Add(in), in)
		}
		var armed []push.WakeUp
		for _, a := range r.all(t, w) {
			armed = append(armed, a.wakeUps...)
		}
		if len(armed) != 3 {
			t.Errorf("armed %+v", armed)
		}
	})
}

// TestWaker_FailingQueue: a failed arming is retried about once a second, each time with a line in the log, until it
// succeeds, or until five seconds after its time.
func TestWaker_FailingQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var works atomic.Bool
		r := &recorder{fails: func() error {
			if works.Load() {
				return nil
			}
			return errFailed
		}}
		w, text := newWaker(r, 4)
		tries := func() int {
			synctest.Wait()
			r.mu.Lock()
			defer r.mu.Unlock()
			return len(r.armings)
		}
		at := time.Now().Add(30 * time.Second)
		for range 1000 { // for ten seconds
			w.Wake(1, at, time.Until(at))
			time.Sleep(10 * time.Millisecond)
		}
		failed := tries()
		if failed < 9 || failed > 11 {
			t.Errorf("%d tries in ten seconds", failed)
		}
		if lines := strings.Count(text.String(), errFailed.Error()); lines != failed {
			t.Errorf("%d lines for %d tries:\n%s", lines, failed, text)
		}
		works.Store(true)
		for range 3 {
			time.Sleep(2 * time.Second)
			w.Wake(1, at, time.Until(at))
			if got := tries(); got != failed+1 {
				t.Errorf("%d tries after the queue works again", got-failed)
			}
		}

		works.Store(false)
		begun := time.Now()
		w.Wake(1, begun.Add(2*time.Second), 2*time.Second)
		r.all(t, w)
		if took := time.Since(begun); took < 7*time.Second || took > 9*time.Second {
			t.Errorf("it gave up after %s", took)
		}
	})
}

// TestWaker_HangingQueue: callers never wait for the queue, and the waker does not wait forever.
func TestWaker_HangingQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{takes: func() time.Duration { return 1000 * time.Hour }}
		w, _ := newWaker(r, 4)
		begun := time.Now()
		for range 1000 {
			w.Wake(1, begun, 0)
			synctest.Wait()
		}
		if waited := time.Since(begun); waited != 0 {
			t.Errorf("callers waited %s", waited)
		}
		w.Wake(1, time.Now(), 0)
		if got := r.all(t, w); len(got) != 2 || time.Since(begun) > time.Minute {
			t.Errorf("after %s: %+v", time.Since(begun), got)
		}
	})
}

// TestWaker_Flush: Flush waits for noted moments until its context ends.
func TestWaker_Flush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{takes: func() time.Duration { return time.Second }}
		w, _ := newWaker(r, 4)
		if err := w.Flush(t.Context()); err != nil {
			t.Error(err)
		}
		w.Wake(1, time.Now(), 0)
		synctest.Wait()
		w.Wake(255, time.Now(), 0) // behind the running arming
		short, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		if err := w.Flush(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("without patience: %v", err)
		}
		if got := r.all(t, w); len(got) != 2 || len(got[1].wakeUps) != 1 || got[1].wakeUps[0].Lane.Last != 255 {
			t.Errorf("%+v", got)
		}
	})
}

// TestWaker_Memory: the waker remembers at most the moments of the horizon.
func TestWaker_Memory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := newWaker(&recorder{}, 4)
		bound := 4 * int((horizon+beyond+2*time.Second)/tenth)
		for range 10_000 {
			for range 20 {
				in := time.Duration(rand.Int64N(int64(2 * horizon)))
				w.Wake(rand.Int64(), time.Now().Add(in), in)
			}
			time.Sleep(50 * time.Millisecond)
			w.mu.Lock()
			n := len(w.armed) + len(w.noted)
			w.mu.Unlock()
			if n > bound {
				t.Fatalf("%d moments are remembered, more than %d", n, bound)
			}
		}
		if err := w.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := len(w.armed); n < bound/2 {
			t.Errorf("%d moments: nothing was tested", n)
		}
	})
}

// TestWaker_NothingIsLost: whenever callers come and however long armings take: what is due at once is in an arming
// that begins after the call; what is further ahead is in one that succeeds before its time, or in one that fails; and
// it succeeds once.
func TestWaker_NothingIsLost(t *testing.T) {
	type call struct {
		lane push.Lane
		made time.Time
		at   time.Time // the moment
		far  bool
	}
	for seed := range uint64(200) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			var mu sync.Mutex
			upTo := func(d time.Duration) time.Duration {
				mu.Lock()
				defer mu.Unlock()
				return time.Duration(random.Int64N(int64(d)))
			}
			r := &recorder{takes: func() time.Duration { return upTo(70 * time.Millisecond) }}
			r.fails = func() error {
				if upTo(10) < 2 {
					return errFailed
				}
				return nil
			}
			w, _ := newWaker(r, 2)
			var calls []call
			for range 200 {
				key, in := int64(upTo(256)), upTo(3*time.Second)-500*time.Millisecond
				in -= in % (50 * time.Millisecond) // so that moments meet
				now := time.Now()
				at := now.Add(in).Truncate(50 * time.Millisecond)
				in = at.Sub(now)
				w.Wake(key, at, in)
				moment := at.Add(tenth - 1).Truncate(tenth)
				if in <= 0 {
					moment = at.Truncate(tenth)
				}
				calls = append(calls, call{push.LaneOf(push.Lanes(2), key), now, moment, in > time.Second})
				time.Sleep(upTo(30 * time.Millisecond))
			}
			armings := r.all(t, w)
			in := func(a arming, c call) bool {
				return slices.ContainsFunc(a.wakeUps, func(w push.WakeUp) bool { return w.Lane == c.lane && w.At.Equal(c.at) })
			}
			fars := map[string]int{}
			for i, c := range calls {
				if !slices.ContainsFunc(armings, func(a arming) bool {
					after := !a.begun.Before(c.made)
					return in(a, c) && (after || c.far && a.err == nil)
				}) {
					t.Fatalf("seed %d: call %d %+v is in no arming", seed, i, c)
				}
				if c.far {
					fars[fmt.Sprint(c.lane, c.at)]++
				}
			}
			again := 0
			for _, c := range calls {
				if c.far && fars[fmt.Sprint(c.lane, c.at)] > 1 {
					again++
				}
				succeeded := 0
				for _, a := range armings {
					// From a second before its time on it is armed whenever it is asked for.
					if a.err == nil && in(a, c) && c.at.Sub(a.begun) > time.Second+100*time.Millisecond {
						succeeded++
					}
				}
				if succeeded > 1 {
					t.Fatalf("seed %d: %+v was armed %d times ahead of its time", seed, c, succeeded)
				}
			}
			if again == 0 {
				t.Fatal("no moment was asked for twice: nothing was tested")
			}
		})
	}
}
