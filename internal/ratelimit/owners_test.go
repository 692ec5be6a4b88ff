package ratelimit

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sendquota/sendquota/internal/testenv"
	"github.com/sendquota/sendquota/internal/wire"
)

// TestOwnersHaveParts: calls of an owner that uses up its part wait for each
// other, and not for long; those of another owner are under way meanwhile.
func TestOwnersHaveParts(t *testing.T) {
	t.Parallel()
	server := testenv.OwnRedis(t)
	w, err := wire.New(strings.TrimSuffix(strings.TrimPrefix(server.URL, "redis://"), "/0"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	rdb := redis.NewClient(&redis.Options{Addr: w.Addr(), ReadTimeout: time.Minute})
	t.Cleanup(func() { _ = rdb.Close() })
	cfg := strict(t)
	cfg.Timeout, cfg.Work, cfg.OwnerWork, cfg.Wait = time.Minute, 2*time.Millisecond, time.Millisecond, 50*time.Millisecond
	l := New(rdb, cfg)
	var heaviest []Rule
	for n := range 16 {
		limit := heavy()[0]
		limit.Limit -= n
		heaviest = append(heaviest, Rule{Subject: "anna", Limit: limit})
	}
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
	time.Sleep(2 * cfg.Wait) // those of the other owner would be refused by now
	w.Thaw()
	others.Wait()
	if err := <-answers; err != nil {
		t.Errorf("the one that had the part: %v", err)
	}
}

// TestNobodyIsBusyWhereRedisHangs: whoever waits for those who wait for Redis is
// told that it is Redis.
func TestNobodyIsBusyWhereRedisHangs(t *testing.T) {
	t.Parallel()
	server := testenv.OwnRedis(t)
	l := New(client(t, server.URL), Config{Timeout: time.Second, Work: 20 * time.Microsecond, OwnerWork: 20 * time.Microsecond})
	rule := Rule{Subject: "anna", Limit: Limit{Algorithm: TokenBucket, Limit: 100, Per: time.Hour}}
	must(t)(l.Take(t.Context(), "o", 1, rule))
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
