package ratelimit

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/redisscript"
	"github.com/sendquota/sendquota/internal/testenv"
)

// heaviest are rules that cost Redis about as much as a call can.
func heaviest() (rules []Rule) {
	for n := range 16 {
		limit := heavy()[0]
		limit.Limit -= n
		rules = append(rules, Rule{Subject: "anna", Limit: limit})
	}
	return rules
}

// TestOwners_Parts: calls of an owner that uses up its share wait for each other, but not for long. Calls of another
// owner run meanwhile.
func TestOwners_Parts(t *testing.T) {
	t.Parallel()
	w, through := testenv.Proxy(t, testenv.OwnRedis(t).URL)
	cfg := strict(t)
	cfg.Timeout, cfg.Work, cfg.OwnerWork, cfg.Wait = time.Minute, 3*time.Millisecond, time.Millisecond, 50*time.Millisecond
	l := New(patient(t, through), cfg)
	heaviest := heaviest()
	must(t)(l.Take(t.Context(), "heavy", 1, heaviest...))

	w.Freeze()
	const many = 10
	answers := make(chan error, many)
	for range many {
		go func() {
			_, err := l.Take(t.Context(), "heavy", 1, heaviest...)
			answers <- err
		}()
	}
	for range many - 1 {
		if err := <-answers; !errors.Is(err, ErrBusy) {
			t.Errorf("an owner with more than its part: %v", err)
		}
	}
	var others sync.WaitGroup
	for range many {
		others.Go(func() {
			if d, err := l.Take(t.Context(), "light", 1, Rule{Subject: "bert", Limit: Limit{Algorithm: TokenBucket, Limit: 100, Per: time.Hour}}); err != nil || !d.Allowed {
				t.Errorf("another owner: %+v, %v", d, err)
			}
		})
	}
	time.Sleep(2 * cfg.Wait) // the other owner's calls would be refused by now
	w.Thaw()
	others.Wait()
	if err := <-answers; err != nil {
		t.Errorf("the one that had the part: %v", err)
	}
}

// TestLimiter_HeavyCalls: light calls go together, and of the heaviest each goes alone.
func TestLimiter_HeavyCalls(t *testing.T) {
	t.Parallel()
	w, through := testenv.Proxy(t, testenv.OwnRedis(t).URL)
	var largest atomic.Int64
	cfg := strict(t)
	cfg.Timeout, cfg.Observe = time.Minute, func(calls int) {
		for was := largest.Load(); int64(calls) > was && !largest.CompareAndSwap(was, int64(calls)); was = largest.Load() {
		}
	}
	l := New(patient(t, through), cfg)
	most := func(rules ...Rule) int64 {
		largest.Store(0)
		w.Freeze()
		var begun, all sync.WaitGroup
		for range 50 {
			begun.Add(1)
			all.Go(func() {
				begun.Done()
				if _, err := l.Take(t.Context(), "o", 1, rules...); err != nil {
					t.Error(err)
				}
			})
		}
		begun.Wait()
		time.Sleep(100 * time.Millisecond) // those that ask by then can go together
		w.Thaw()
		all.Wait()
		return largest.Load()
	}
	if n := most(heaviest()...); n != 1 {
		t.Errorf("%d of the heaviest calls went together", n)
	}
	if n := most(Rule{Subject: "bert", Limit: Limit{Algorithm: TokenBucket, Limit: 100, Per: time.Hour}}); n < 2 {
		t.Errorf("%d light ones", n)
	}
}

// TestOwners_RedisHangs: a call that waits for calls that wait for Redis gets the error of Redis.
func TestOwners_RedisHangs(t *testing.T) {
	t.Parallel()
	server := testenv.OwnRedis(t)
	l := New(client(t, server.URL), Config{Config: redisscript.Config{Timeout: 500 * time.Millisecond}, Work: 20 * time.Microsecond, OwnerWork: 20 * time.Microsecond})
	rule := Rule{Subject: "anna", Limit: Limit{Algorithm: TokenBucket, Limit: 100, Per: time.Hour}}
	if err := server.Pause(); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			if _, err := l.Take(t.Context(), "o", 1, rule); !errors.Is(err, ErrUnavailable) {
				t.Error(err)
			}
		})
	}
	all.Wait()
}
