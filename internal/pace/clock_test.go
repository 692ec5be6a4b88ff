package pace

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/redisclient"
	"github.com/sendquota/sendquota/internal/testenv"
)

// bundle runs the scripts on a real Redis, with a clock that the test sets. All else of them is what programs run.
type bundle struct {
	t    *testing.T
	rdb  redisclient.Client
	real time.Duration // that passed
	back time.Duration // how far the clock jumped back
	runs time.Duration // since Redis was started; 0: for long
}

const epoch = 1_795_000_000_123_457 // microseconds: numbers of real lengths

func setup(t *testing.T) *bundle {
	return &bundle{t: t, rdb: testenv.RedisClient(t, testenv.Redis(t))}
}

func (c *bundle) run(script, key string, args ...any) []int64 {
	c.t.Helper()
	now := epoch + (c.real - c.back).Microseconds()
	for _, change := range [][2]string{{"local time = redis.call('TIME')\n", ""}, {"time[1] * 1000000 + time[2]", fmt.Sprint(now)}} {
		if strings.Count(script, change[0]) != 1 {
			c.t.Fatalf("the script has not one %q", change[0])
		}
		script = strings.Replace(script, change[0], change[1], 1)
	}
	runs := cmp.Or(c.runs, 1000*time.Hour)
	script = strings.Replace(script, "redis.pcall('INFO', 'server')", fmt.Sprintf("'uptime_in_seconds:%d'", int(runs.Seconds())), 1)
	answer, err := c.rdb.Eval(c.t.Context(), script, []string{key, key + ":levels"}, args...).Int64Slice()
	if err != nil {
		c.t.Fatal(err)
	}
	return answer
}

// take takes slots, with the worker's knowledge of the used slots.
func (c *bundle) take(s Speed, wanted int, known any) (slots int, wait, used time.Duration) {
	c.t.Helper()
	a := c.run(slotsSource, "slots", s.Every.Microseconds(), s.Burst, wanted, together.Microseconds(), (10 * (s.Every + together)).Microseconds(), known)
	return int(a[0]), time.Duration(a[1]) * time.Microsecond, time.Duration(a[2]) * time.Microsecond
}

// TestSlots_ClockGoesBack: by real time the slots keep their distance, and a worker waits no longer than it would have
// before the jump.
func TestSlots_ClockGoesBack(t *testing.T) {
	t.Parallel()
	for _, s := range []Speed{PerSpan(10, time.Second, 1), PerSpan(10, time.Second, 5), PerSpan(1, time.Minute, 1)} {
		for _, back := range []time.Duration{time.Microsecond, s.Every / 3, s.Every, 5 * s.Every / 2, time.Hour, 30 * 24 * time.Hour} {
			for _, late := range []time.Duration{0, s.Every / 2, 2 * s.Every, 20 * s.Every} {
				t.Run(fmt.Sprint(s, back, late), func(t *testing.T) {
					c := setup(t)
					var at []time.Duration
					owed := time.Duration(0)
					for n := range 40 {
						if n == 20 {
							c.real += late
							c.back = back
						}
						slots, wait, used := c.take(s, 1, "")
						if slots != 1 || wait > owed {
							t.Fatalf("take %d: %d slots after %s, though %s are owed", n, slots, wait, owed)
						}
						owed = used
						at = append(at, c.real+wait)
						if n%4 == 3 {
							c.real += wait // others wait at the same time
						}
					}
					for i := s.Burst; i < len(at); i++ {
						if gap := at[i] - at[i-s.Burst]; gap < s.Every {
							t.Errorf("slots %d to %d lie within %s", i-s.Burst, i, gap)
						}
					}
				})
			}
		}
	}
}

// TestSlots_RedisForgot: they are known to a worker that waited for one: then all that others may still wait for are
// used first, and there is no burst.
func TestSlots_RedisForgot(t *testing.T) {
	t.Parallel()
	s := PerSpan(10, time.Second, 5)
	longest := 10 * (s.Every + together)
	for name, lose := range map[string]func(c *bundle){
		"all":       func(c *bundle) { c.rdb.FlushDB(t.Context()) },
		"the last":  func(c *bundle) { c.rdb.Set(t.Context(), "slots", fmt.Sprintf("%d.%d", epoch, epoch), 0) },
		"by a jump": func(c *bundle) { c.back = -time.Hour },
	} {
		t.Run(name, func(t *testing.T) {
			c := setup(t)
			var used time.Duration
			for range 12 {
				_, _, used = c.take(s, 1, "")
			}
			c.real += 700 * time.Millisecond
			lose(c)
			if _, wait, _ := c.take(s, 5, (used - 700*time.Millisecond).Microseconds()); wait != longest {
				t.Errorf("the next slot comes after %s, want %s", wait, longest)
			}
			if slots, wait, _ := c.take(s, 5, ""); slots != 1 || wait != longest+s.Every {
				t.Errorf("and then %d after %s", slots, wait)
			}
		})
	}
	c := setup(t)
	_, _, used := c.take(s, 1, "")
	c.rdb.FlushDB(t.Context())
	c.real += 10 * time.Second // long enough that no worker waits any more
	if slots, wait, _ := c.take(s, 5, (used - 10*time.Second).Microseconds()); slots != 5 || wait != 0 {
		t.Errorf("%d slots after %s", slots, wait)
	}
}

// TestSlots_RestartForgot: no worker that comes knows them. Then none is taken until all that others may wait for are
// used up, whether Redis has old data or none.
func TestSlots_RestartForgot(t *testing.T) {
	t.Parallel()
	s := PerSpan(10, time.Second, 5)
	longest := 10 * (s.Every + together)
	for name, lose := range map[string]func(c *bundle){
		"all":      func(c *bundle) { c.rdb.FlushDB(t.Context()) },
		"the last": func(c *bundle) { c.rdb.Set(t.Context(), "slots", fmt.Sprintf("%d.%d", epoch, epoch), 0) },
	} {
		t.Run(name, func(t *testing.T) {
			c := setup(t)
			for range 12 {
				c.take(s, 1, "")
			}
			c.real += 300 * time.Millisecond
			lose(c)
			c.runs = time.Nanosecond // as whole seconds: 0
			if slots, wait, _ := c.take(s, 1, ""); slots != 0 || wait != longest+time.Second {
				t.Errorf("at once: %d slots after %s", slots, wait)
			}
			c.real, c.runs = c.real+2*time.Second, 2*time.Second
			if slots, wait, _ := c.take(s, 1, ""); slots != 0 || wait != longest-time.Second {
				t.Errorf("two seconds later: %d slots after %s", slots, wait)
			}
			c.real, c.runs = c.real+time.Second, 3*time.Second
			if slots, wait, _ := c.take(s, 1, ""); slots != 1 || wait != 0 {
				t.Errorf("three seconds later: %d slots after %s", slots, wait)
			}
		})
	}
}

// TestPause_ClockGoesBack: a pause lasts no longer than it was asked for.
func TestPause_ClockGoesBack(t *testing.T) {
	t.Parallel()
	c, tenant := setup(t), uuid.New()
	paused := func() time.Duration {
		answer, err := c.rdb.Eval(t.Context(), pausedSource, []string{"pause"}).Int64Slice()
		if err != nil {
			t.Fatal(err)
		}
		if len(answer) == 0 {
			return 0
		}
		if tenantOf(answer[0], answer[1]) != tenant {
			t.Errorf("%v pauses", answer)
		}
		return time.Duration(answer[2]) * time.Millisecond
	}
	if left := paused(); left != 0 {
		t.Errorf("without a request, %s are left", left)
	}
	if err := c.rdb.Eval(t.Context(), pauseSource, []string{"pause"}, tenantField(tenant), 20_000, mostPausing).Err(); err != nil {
		t.Fatal(err)
	}
	if left := paused(); left > 20*time.Second || left < 15*time.Second {
		t.Errorf("%s are left", left)
	}
	ahead := fmt.Sprintf("%d:20000", time.Now().Add(time.Hour).UnixMilli())
	c.rdb.HSet(t.Context(), "pause", tenantField(tenant), ahead) // as if the clock had gone back
	if left := paused(); left != 20*time.Second {
		t.Errorf("%s are left", left)
	}
	if left := paused(); left > 20*time.Second || left < 15*time.Second {
		t.Errorf("it lasts for %s more", left)
	}
}

// TestPause_Bound: of very many tenants only some are noted.
func TestPause_Bound(t *testing.T) {
	t.Parallel()
	c := setup(t)
	for range 4 {
		if err := c.rdb.Eval(t.Context(), pauseSource, []string{"pause"}, tenantField(uuid.New()), 20_000, 3).Err(); err != nil {
			t.Fatal(err)
		}
	}
	if n := c.rdb.HLen(t.Context(), "pause").Val(); n != 3 {
		t.Errorf("%d tenants pause", n)
	}
}

// TestPresence_ClockGoesBack: one that is gone is forgotten a minute later, however far ahead the clock was when it was
// heard of.
func TestPresence_ClockGoesBack(t *testing.T) {
	t.Parallel()
	c := setup(t)
	announce := func(name string) []int64 {
		return c.run(presenceSource, workersKey("sq:"), name, presence.Milliseconds())[:2]
	}
	for i, name := range []string{"b", "a", "c"} {
		if a := announce(name); a[0] != int64(i+1) || a[1] != map[string]int64{"a": 0, "b": 0, "c": 2}[name] {
			t.Errorf("%s: %v", name, a)
		}
	}
	c.back = 24 * time.Hour
	if a := announce("b"); a[0] != 3 || a[1] != 1 {
		t.Errorf("after the jump: %v", a)
	}
	c.real += presence - time.Second
	if a := announce("b"); a[0] != 3 {
		t.Errorf("within a minute: %v", a)
	}
	c.real += 2 * time.Second
	if a := announce("b"); a[0] != 1 || a[1] != 0 {
		t.Errorf("after a minute: %v", a)
	}
}

// TestShares_Turns: the slots of all shares lie at equal distances, although each worker knows Redis' clock by its own.
func TestShares_Turns(t *testing.T) {
	t.Parallel()
	s := PerSpan(10, time.Second, 1)
	for _, workers := range []int{1, 3, 10} {
		now := time.Now()
		slots := map[time.Duration]int{}
		for n := range workers {
			seen := now.Add(-time.Duration(n) * 333 * time.Millisecond)
			c := peers{workers: workers, position: float64(n) / float64(workers), at: seen, clock: reading{at: seen, clock: time.UnixMicro(epoch).Add(seen.Sub(now))}}
			at := now
			for range 3 {
				at = c.next(s, at.Add(time.Nanosecond))
				slots[at.Sub(now).Round(time.Microsecond)]++
			}
		}
		if len(slots) != 3*workers {
			t.Errorf("%d workers have %d slots at their own times", workers, len(slots))
		}
		for at := range slots {
			if next := at + 2*s.Every; slots[next] == 0 && at < 2*time.Duration(2*workers)*s.Every {
				t.Errorf("%d workers: %s after the slot at %s there is none", workers, 2*s.Every, at)
			}
		}
	}
}

// TestPeers_QuickestReading: it counts, until it is old: an answer that was late says little.
func TestPeers_QuickestReading(t *testing.T) {
	t.Parallel()
	now := time.Now()
	p := New(nil, nil, "a", nil)
	meet := func(after, doubt time.Duration) reading {
		p.meet(peers{workers: 2, at: now.Add(after), clock: reading{at: now.Add(after), clock: now.Add(after), doubt: doubt}})
		return p.among.clock
	}
	for _, step := range []struct{ after, doubt, want time.Duration }{
		{0, time.Millisecond, time.Millisecond},
		{time.Second, 100 * time.Millisecond, time.Millisecond},
		{2 * time.Second, time.Microsecond, time.Microsecond},
		{time.Minute, time.Second, time.Microsecond},
		{2*time.Minute + 3*time.Second, time.Second, time.Second},
	} {
		if got := meet(step.after, step.doubt); got.doubt != step.want {
			t.Errorf("after %s the reading in use may be wrong by %s, want %s", step.after, got.doubt, step.want)
		}
	}
}
