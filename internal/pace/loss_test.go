package pace_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/devstack"
	"github.com/sendquota/sendquota/internal/pace"
	"github.com/sendquota/sendquota/internal/testenv"
)

// slot is one that was taken: its time lies between these two.
type slot struct {
	worker           string
	earliest, latest time.Time
}

// apart is the longest time that can lie between two slots.
func (s slot) apart(other slot) time.Duration {
	return max(s.latest.Sub(other.earliest), other.latest.Sub(s.earliest))
}

// bundle are workers that use every slot they can get, each as if it were a process of its own.
type bundle struct {
	t     *testing.T
	redis *devstack.Server
	speed pace.Speed
	stop  context.CancelFunc
	all   sync.WaitGroup

	mu    sync.Mutex
	slots []slot
}

func setup(t *testing.T, workers int, watch bool, speed pace.Speed) *bundle {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	f := &bundle{t: t, redis: testenv.OwnRedis(t), speed: speed, stop: stop}
	for n := range workers {
		name := fmt.Sprint("worker-", n)
		p := pace.New(client(t, f.redis.URL), nil, name, func(error) {})
		if watch {
			f.all.Go(func() { _ = p.Run(ctx, []string{"sms"}, nil) })
		}
		f.all.Go(func() {
			for ctx.Err() == nil {
				before := time.Now()
				slots, wait := take(ctx, p, "sms", speed, 1)
				after := time.Now()
				f.mu.Lock()
				for range slots {
					f.slots = append(f.slots, slot{name, before.Add(wait), after.Add(wait)})
				}
				f.mu.Unlock()
				select {
				case <-ctx.Done():
				case <-time.After(wait):
				}
			}
		})
	}
	t.Cleanup(f.end)
	if watch {
		f.acquaint(workers)
	}
	return f
}

// acquaint waits until each worker has looked twice since all were there: so each surely knows of all.
func (f *bundle) acquaint(workers int) {
	f.t.Helper()
	rdb, looks, latest := client(f.t, f.redis.URL), 0, 0.0
	testenv.Until(f.t, time.Millisecond, "the workers find each other", func() bool {
		all := rdb.ZRangeWithScores(context.Background(), "sq:pace:workers", 0, -1).Val() // the oldest look first
		if len(all) == workers && all[0].Score > latest {
			looks, latest = looks+1, all[workers-1].Score
		}
		return looks == 3
	})
}

func (f *bundle) end() {
	f.stop()
	f.all.Wait()
}

// since are the slots that surely lie after a time, in order.
func (f *bundle) since(t time.Time) (after []slot) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.slots {
		if s.earliest.After(t) {
			after = append(after, s)
		}
	}
	slices.SortFunc(after, func(a, b slot) int { return a.earliest.Compare(b.earliest) })
	return after
}

// await waits until a number of slots after a time were taken.
func (f *bundle) await(t time.Time, slots int) {
	f.t.Helper()
	testenv.Until(f.t, 10*time.Millisecond, fmt.Sprint(slots, " slots are taken"), func() bool { return len(f.since(t)) >= slots })
}

// awaitSpeed waits for a second with the maximum number of slots after a time, because a busy machine misses some.
func (f *bundle) awaitSpeed(t time.Time, rate int) {
	f.t.Helper()
	testenv.Until(f.t, 100*time.Millisecond, "all slots of a second are taken after all is well again", func() bool {
		all := f.since(t)
		most, _ := fullest(all[max(0, len(all)-2*rate):])
		return most >= rate-1
	})
}

// fullest is the most slots that surely lie within some second.
func fullest(all []slot) (most int, when time.Time) {
	for _, first := range all {
		n := 0
		for _, s := range all {
			if !s.earliest.Before(first.earliest) && s.latest.Before(first.earliest.Add(time.Second)) {
				n++
			}
		}
		if n > most {
			most, when = n, first.earliest
		}
	}
	return most, when
}

// TestTake_RedisIsLost: it comes back, for a moment and for long, with its data and without, while ten workers use all
// slots that they get: in no second are there more than the provider can take. While it is lost, shares are used; when
// it is back, all is as before.
func TestTake_RedisIsLost(t *testing.T) {
	t.Parallel()
	const workers = 10
	kill := func(f *bundle) (func() error, error) {
		return func() error { return f.redis.Restart(context.Background()) }, f.redis.Kill()
	}
	freeze := func(f *bundle) (func() error, error) { return f.redis.Resume, f.redis.Pause() }
	var all sync.WaitGroup
	defer all.Wait()
	rows := []struct {
		rate, burst int
		watch       bool          // who does not watch finds out when it takes slots
		away        time.Duration // 0: until shares were used
		lose        func(*bundle) (func() error, error)
	}{
		{10, 1, true, 0, kill}, {10, 1, false, 0, freeze}, {40, 20, true, 0, kill}, {100, 1, false, 50 * time.Millisecond, kill},
		{40, 10, true, 1300 * time.Millisecond, freeze},
		{5, 1, true, 0, freeze}, {100, 1, true, 0, kill}, {10, 1, false, 50 * time.Millisecond, kill}, {10, 1, true, 300 * time.Millisecond, freeze},
		{40, 1, false, 700 * time.Millisecond, kill},
	}
	if testing.Short() {
		rows = rows[:5] // the others are between these
	}
	for _, row := range rows {
		all.Go(func() { // most of the time they wait
			t.Run(fmt.Sprintf("%d per second, burst %d, %v, %s", row.rate, row.burst, row.watch, row.away), func(t *testing.T) {
				f := setup(t, workers, row.watch, pace.PerSpan(row.rate, time.Second, row.burst))
				f.await(time.Time{}, row.rate+2*workers)
				lost := time.Now()
				back, err := row.lose(f)
				if err != nil {
					t.Fatal(err)
				}
				if time.Sleep(row.away); row.away == 0 {
					f.await(lost.Add(time.Second+workers*f.speed.Every), row.rate) // all that was taken before is used up: these are shares
				}
				if err := back(); err != nil {
					t.Fatal(err)
				}
				returned := time.Now()
				f.awaitSpeed(returned.Add(4*time.Second), row.rate)
				f.end()
				if most, when := fullest(f.since(time.Time{})); most > row.rate+row.burst {
					t.Errorf("%d slots within a second, %s after the loss, and %s after the return", most, when.Sub(lost), when.Sub(returned))
				}
			})
		})
	}
}

// TestShares: they are half of a channel's speed, each worker's in turn, and never closer to each other than the
// channel's own slots, however late Redis' answers were: the clock of a worker is wrong by half of the time-out of an
// exchange, at most.
func TestShares(t *testing.T) {
	t.Parallel()
	const workers = 4
	f := setup(t, workers, true, pace.PerSpan(4, time.Second, 1))
	f.await(time.Time{}, workers)
	lost := time.Now()
	if err := f.redis.Kill(); err != nil {
		t.Fatal(err)
	}
	beginning := lost.Add(3 * time.Second) // until then slots of Redis may be used
	f.await(beginning, 3*workers)
	f.end()
	turn, last := 2*workers*f.speed.Every, map[string]slot{}
	for i, s := range f.since(beginning) {
		if i > 0 {
			if gap := s.apart(last[""]); gap < f.speed.Every {
				t.Errorf("slot %d is at most %s away from the one before", i, gap)
			}
		}
		if before, ok := last[s.worker]; ok {
			if gap := s.apart(before); gap < turn-f.speed.Every {
				t.Errorf("%s has slots that are at most %s apart", s.worker, gap)
			}
		}
		last[""], last[s.worker] = s, s
	}
	if len(last) != 1+workers {
		t.Errorf("%d workers had slots", len(last)-1)
	}
}

// TestTake_NeverReachedRedis: a worker that never reached Redis assumes that there are others, and has no slot before
// any other worker's slots are used up.
func TestTake_NeverReachedRedis(t *testing.T) {
	t.Parallel()
	server := testenv.OwnRedis(t)
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	speed := pace.PerSpan(50, time.Second, 1)
	failures := 0
	p := pace.New(client(t, server.URL), nil, "a", func(error) { failures++ })
	began := time.Now()
	at := send(t, p, speed, 4)
	notBefore(t, began, at, func(i int) time.Duration { return 500*time.Millisecond + time.Duration(i)*400*time.Millisecond }) // the turn is of 400 ms
	if took := time.Since(began); failures > 2+int(took/time.Second) {
		t.Errorf("Redis was asked %d times within %s", failures, took)
	}
}

// TestTake_RedisComesBack: the slots of a slow channel keep their distance from what was sent before.
func TestTake_RedisComesBack(t *testing.T) {
	t.Parallel()
	f := setup(t, 1, true, pace.PerSpan(2, time.Second, 1))
	f.await(time.Time{}, 1)
	lost := time.Now()
	if err := f.redis.Kill(); err != nil {
		t.Fatal(err)
	}
	f.await(lost.Add(time.Second), 2)
	returned := time.Now()
	if err := f.redis.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.await(returned.Add(time.Second), 3)
	f.end()
	all := f.since(time.Time{})
	for i, s := range all[1:] {
		if gap := s.latest.Sub(all[i].earliest); gap < f.speed.Every {
			t.Errorf("slot %d is surely less than %s after the one before", i+1, gap)
		}
	}
}
