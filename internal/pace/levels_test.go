package pace

import (
	"slices"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/push"
)

// levelWorker is a worker in simulated time: it takes a slot, waits for it, sends, and asks for the next one.
type levelWorker struct {
	waits [len(push.Levels)]bool
	dead  bool

	at     time.Duration // when it acts next
	slot   bool          // it then has a slot
	served [len(push.Levels)]int
	tags   *Tags
	sent   []levelSent
}

type levelSent struct {
	at    time.Duration
	level int
}

// next returns the level that the worker serves: of its own, the one with the least tag.
func (w *levelWorker) next() int {
	best := -1
	for i, waits := range w.waits {
		if waits && (best < 0 || w.tags.Level[i] < w.tags.Level[best]) {
			best = i
		}
	}
	return best
}

// act lets the worker that is next in time act, and returns it.
func (c *bundle) act(s Speed, workers []*levelWorker) *levelWorker {
	c.t.Helper()
	w := slices.MinFunc(workers, func(a, b *levelWorker) int {
		if a.dead != b.dead {
			if a.dead {
				return 1
			}
			return -1
		}
		return int(a.at - b.at)
	})
	c.real = max(c.real, w.at)
	if w.slot {
		if i := w.next(); i >= 0 {
			w.served[i]++
			w.sent = append(w.sent, levelSent{c.real, i})
		}
		w.slot = false
	}
	d := Demand{Shares: push.DefaultShares, Waits: w.waits, Served: w.served}
	longest := time.Duration(len(workers)) * (s.Every + together)
	a := c.run(slotsSource, "slots", d.arguments([]any{s.Every.Microseconds(), s.Burst, 1, together.Microseconds(), longest.Microseconds(), ""})...)
	w.served, w.tags, w.slot = [len(push.Levels)]int{}, tagsOf(a[3:]), a[0] > 0
	w.at = c.real + max(micros(a[1]), 100*time.Microsecond) // no exchange takes less
	return w
}

// sentBy counts what was sent until a time, by level.
func sentBy(workers []*levelWorker, from, until time.Duration) (n [len(push.Levels)]int) {
	for _, w := range workers {
		for _, one := range w.sent {
			if one.at >= from && one.at < until {
				n[one.level]++
			}
		}
	}
	return n
}

// TestSlots_Levels: the levels have their shares over all workers together, also if each level waits at another worker
// only. No slot is lost.
func TestSlots_Levels(t *testing.T) {
	t.Parallel()
	const u, n, b = 0, 1, 2
	for name, row := range map[string]struct {
		waits [][]int // the levels that wait, of each worker
		want  [3]int  // of 400 slots
	}{
		"everywhere":                   {[][]int{{u, n, b}, {u, n, b}, {u, n, b}}, [3]int{280, 80, 40}},
		"each at one worker":           {[][]int{{u}, {n}, {b}}, [3]int{280, 80, 40}},
		"bulk at two workers":          {[][]int{{u}, {b}, {b}}, [3]int{350, 0, 50}},
		"urgent at a worker with bulk": {[][]int{{u, b}, {b}, {b}}, [3]int{350, 0, 50}},
		"one level":                    {[][]int{{b}, {b}, {b}}, [3]int{0, 0, 400}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, s := setup(t), PerSpan(10, time.Second, 1)
			var workers []*levelWorker
			for _, levels := range row.waits {
				w := &levelWorker{}
				for _, i := range levels {
					w.waits[i] = true
				}
				workers = append(workers, w)
			}
			for c.real < 41*time.Second {
				c.act(s, workers)
			}
			got := sentBy(workers, time.Second, 41*time.Second)
			for i := range got {
				if d := got[i] - row.want[i]; d < -4 || d > 4 {
					t.Errorf("%v were sent of the levels, want about %v", got, row.want)
					break
				}
			}
			var at []time.Duration
			for _, w := range workers {
				for _, one := range w.sent {
					at = append(at, one.at)
				}
			}
			slices.Sort(at)
			for i := 1; i < len(at); i++ {
				if gap := at[i] - at[i-1]; gap < s.Every-time.Millisecond || gap > s.Every+time.Millisecond {
					t.Fatalf("slots %d and %d are %s apart", i-1, i, gap)
				}
			}
		})
	}
}

// TestSlots_LevelOfDeadWorker: a worker with the level that comes first dies. The others use all slots at once.
func TestSlots_LevelOfDeadWorker(t *testing.T) {
	t.Parallel()
	c, s := setup(t), PerSpan(10, time.Second, 1)
	workers := []*levelWorker{{waits: [3]bool{true}}, {waits: [3]bool{2: true}}, {waits: [3]bool{2: true}}}
	for c.real < 10*time.Second {
		c.act(s, workers)
	}
	workers[0].dead = true
	for c.real < 21*time.Second {
		c.act(s, workers)
	}
	if got := sentBy(workers, 10*time.Second, 20*time.Second); got[2] < 98 { // it had taken a slot
		t.Errorf("%v were sent in the ten seconds after the death of a worker, want 99 or more", got)
	}
}

// TestSlots_UrgentArrives: an urgent push that comes to a worker in which only that waits leaves within two slots more
// than there are workers, which have taken slots before.
func TestSlots_UrgentArrives(t *testing.T) {
	t.Parallel()
	c, s := setup(t), PerSpan(10, time.Second, 1)
	workers := []*levelWorker{{dead: true}, {waits: [3]bool{2: true}}, {waits: [3]bool{2: true}}}
	for n := range 20 {
		began := time.Duration(n+1) * 5 * time.Second
		for c.real < began {
			c.act(s, workers)
		}
		w := workers[0]
		*w = levelWorker{waits: [3]bool{true}, at: c.real}
		for len(w.sent) == 0 {
			c.act(s, workers)
		}
		if late := w.sent[0].at - began; late > time.Duration(len(workers)+2)*s.Every {
			t.Errorf("an urgent push waited for %s", late)
		}
		w.dead = true
	}
}

// TestSlots_LevelsForgotten: Redis has lost the tags, or its clock goes back. The shares go on.
func TestSlots_LevelsForgotten(t *testing.T) {
	t.Parallel()
	for name, trouble := range map[string]func(c *bundle){
		"flushed":         func(c *bundle) { c.rdb.FlushDB(t.Context()) },
		"clock goes back": func(c *bundle) { c.back += time.Hour },
		"other levels":    func(c *bundle) { c.rdb.Set(t.Context(), "slots:levels", "1 2 3", 0) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, s := setup(t), PerSpan(10, time.Second, 1)
			workers := []*levelWorker{{waits: [3]bool{true}}, {waits: [3]bool{2: true}}}
			for c.real < 10*time.Second {
				c.act(s, workers)
			}
			trouble(c)
			for c.real < 31*time.Second {
				c.act(s, workers)
			}
			got := sentBy(workers, 11*time.Second, 31*time.Second)
			if sum := got[0] + got[2]; sum < 190 || got[0] < 165 || got[2] < 20 {
				t.Errorf("%v were sent in twenty seconds after it", got)
			}
		})
	}
}

// TestSlots_ManySentBefore: a worker reports all that it sent while it could not reach Redis. A level that begins to wait
// then neither pays nor gets credit for it.
func TestSlots_ManySentBefore(t *testing.T) {
	t.Parallel()
	c, s := setup(t), PerSpan(10, time.Second, 1)
	workers := []*levelWorker{{waits: [3]bool{2: true}, served: [3]int{2: 3000}}, {waits: [3]bool{true}, at: time.Second}}
	for c.real < 41*time.Second {
		c.act(s, workers)
	}
	if got := sentBy(workers, time.Second, 11*time.Second); got[0] < 80 || got[2] < 8 {
		t.Errorf("%v were sent in ten seconds", got)
	}
}
