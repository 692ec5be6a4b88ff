package schedule_test

import (
	"errors"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/schedule"
)

// branches opens two bundles of one company: what the second does, the cache
// of the first does not learn.
func branches(t *testing.T) (first, second *bundle) {
	t.Helper()
	s := newServers(t)
	first, second = s.open(t, threeRules), servers{s.postgres, noRedis}.open(t, threeRules)
	second.tenant = first.tenant
	first.submit(t, 10*time.Hour)
	first.submit(t, 11*time.Hour) // and is warm from here on
	return first, second
}

func (b *bundle) refused(t *testing.T, in time.Duration) {
	t.Helper()
	if _, err := b.Submit(t.Context(), b.tenant, request(in), schedule.Options{}); !isRefusal(err) {
		t.Errorf("at %s: %v", in, err)
	}
}

func isRefusal(err error) bool {
	_, ok := errors.AsType[*schedule.Refusal](err)
	return ok
}

// TestSubmit_FirstOfRecipient: the cache is not asked about a recipient's first push, nor told of it, and at most once
// about any other, but for the one that loads it.
func TestSubmit_FirstOfRecipient(t *testing.T) {
	t.Parallel()
	b := setup(t)
	asked := func() (n int) {
		for _, state := range []string{"cold", "free", "blocked"} {
			n += b.metrics.of("cache " + state)
		}
		return n
	}
	for i, want := range []int{0, 1, 2, 3} {
		b.submit(t, time.Duration(10+i)*time.Hour)
		if got := asked(); got != want {
			t.Errorf("after %d submits the cache was asked %d times, want %d", i+1, got, want)
		}
	}
	b.refused(t, 10*time.Hour)
	if b.metrics.of("cache blocked") == 0 {
		t.Error("the cache does not know the first push")
	}
}

// TestSubmit_CacheKnowsTooLittle: the cache books what Postgres then refuses, and must not keep it.
func TestSubmit_CacheKnowsTooLittle(t *testing.T) {
	t.Parallel()
	first, second := branches(t)
	second.submit(t, time.Hour)
	first.refused(t, time.Hour+30*time.Second)
	if first.metrics.of("cache free") == 0 {
		t.Fatal("the cache knew")
	}
	first.submit(t, time.Hour+80*time.Second) // far enough from what is booked, not from what was refused
}

// TestSubmit_CacheKnowsTooMuch: the cache alone refuses nothing, because Postgres confirms refusals.
func TestSubmit_CacheKnowsTooMuch(t *testing.T) {
	t.Parallel()
	first, second := branches(t)
	p := first.submit(t, time.Hour)
	if _, err := second.Cancel(t.Context(), second.tenant, p.ID); err != nil {
		t.Fatal(err)
	}
	first.submit(t, time.Hour)
	if first.metrics.of("cache blocked") == 0 {
		t.Fatal("the cache knew")
	}
	first.submit(t, time.Hour-time.Minute)
}

// TestSubmit_CanceledReplay: a replay of a canceled push takes no place, neither in Postgres nor in the cache.
func TestSubmit_CanceledReplay(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.submit(t, 10*time.Hour)
	submit := func() schedule.Result {
		res, err := b.Submit(t.Context(), b.tenant, request(time.Hour), schedule.Options{IdempotencyKey: "k", RequestHash: []byte("body")})
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	p := submit().Push
	if _, err := b.Cancel(t.Context(), b.tenant, p.ID); err != nil {
		t.Fatal(err)
	}
	if again := submit(); !again.Replayed || again.Push.Status != push.Canceled {
		t.Fatalf("%+v", again)
	}
	b.submit(t, time.Hour)
}
