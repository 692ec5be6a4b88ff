package schedule_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/schedule"
	"github.com/sendquota/sendquota/internal/testenv"
)

// branches opens two bundles of one company. The first one's cache does not see what the second one books.
func branches(t *testing.T) (first, second *bundle) {
	t.Helper()
	s := newServers(t)
	first, second = s.open(t, threeRules), s.beside(t).withoutRedis().open(t, threeRules)
	second.tenant = first.tenant
	first.submit(t, 10*time.Hour)
	first.submit(t, 11*time.Hour) // and is warm from here on
	first.flush(t)
	return first, second
}

// flush waits until the cache has processed all updates.
func (b *bundle) flush(t testing.TB) {
	t.Helper()
	testenv.Check(t, b.cache.Flush(t.Context()))
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

// TestSubmit_OneQuestion counts the scripts that Redis runs for a submit, before and after the answer: none for a
// recipient's first push; none and one for the second, which loads the recipient; one before the answer for every
// other, booked or refused; none for a batch before the answer, and one after it for each recipient that was noted
// before.
func TestSubmit_OneQuestion(t *testing.T) {
	t.Parallel()
	s := newServers(t)
	s.redis = testenv.OwnRedis(t).URL // no other test sends it commands
	b := s.open(t, threeRules)
	counter := testenv.RedisClient(t, s.redis)
	scripts := func() (n int) {
		stats, err := counter.Info(t.Context(), "commandstats").Result()
		testenv.Check(t, err)
		for _, command := range []string{"eval", "evalsha"} {
			if _, after, ok := strings.Cut(stats, "cmdstat_"+command+":calls="); ok {
				calls, _, _ := strings.Cut(after, ",")
				more, err := strconv.Atoi(calls)
				testenv.Check(t, err)
				n += more
			}
		}
		return n
	}
	asked := func() int {
		return b.metrics.of("cache cold") + b.metrics.of("cache free") + b.metrics.of("cache blocked")
	}
	b.cache.Reserve(quota.Recipient{Tenant: b.tenant, ID: "nobody"}, quota.Booking{}, nil) // Redis knows the scripts from here on
	b.cache.Fill(quota.Recipient{Tenant: b.tenant, ID: "nobody"}, nil, false)
	b.cache.Add(quota.Recipient{Tenant: b.tenant, ID: "nobody"}, quota.Booking{})
	b.cache.Forget(quota.Recipient{Tenant: b.tenant, ID: "nobody"})
	b.flush(t)
	submit := func(in time.Duration, o schedule.Options) func() error {
		return func() error {
			_, err := b.Submit(t.Context(), b.tenant, request(in), o)
			return err
		}
	}
	deferred := func() error {
		r := request(3 * time.Hour)
		r.Defer = true
		_, err := b.Submit(t.Context(), b.tenant, r, schedule.Options{})
		return err
	}
	batch := func() error {
		members := []schedule.Member{{Request: request(4 * time.Hour)}, {Request: request(5 * time.Hour)}}
		members[1].Request.Recipient = "bert"
		err := b.SubmitBatch(t.Context(), b.tenant, members, false, schedule.Options{})
		return errors.Join(err, members[0].Err, members[1].Err)
	}
	keyed := schedule.Options{IdempotencyKey: "k", RequestHash: []byte("body")}
	for _, row := range []struct {
		name          string
		call          func() error
		refused       bool
		before, after int
	}{
		{"the first", submit(10*time.Hour, schedule.Options{}), false, 0, 0},
		{"the second", submit(11*time.Hour, schedule.Options{}), false, 0, 1},
		{"the third", submit(12*time.Hour, schedule.Options{}), false, 1, 0},
		{"a refused one", submit(12*time.Hour, schedule.Options{}), true, 1, 0},
		{"a refused one again", submit(12*time.Hour, schedule.Options{}), true, 0, 0},
		{"one that only validates", submit(13*time.Hour, schedule.Options{ValidateOnly: true}), false, 0, 0},
		{"with a key", submit(13*time.Hour, keyed), false, 1, 0},
		{"the same again", submit(13*time.Hour, keyed), false, 1, 0},
		{"a deferred one", deferred, false, 0, 1},
		{"a batch for a known and an unknown recipient", batch, false, 0, 1},
		{"after the batch", submit(14*time.Hour, schedule.Options{}), false, 1, 1},
		{"and again", submit(15*time.Hour, schedule.Options{}), false, 1, 0},
		{"a refused one", submit(15*time.Hour, schedule.Options{}), true, 1, 0},
		{"a granted one after it", submit(16*time.Hour, schedule.Options{}), false, 0, 1},
		{"and the next one", submit(17*time.Hour, schedule.Options{}), false, 1, 0},
	} {
		scriptsBefore, askedBefore := scripts(), asked()
		if err := row.call(); isRefusal(err) != row.refused || err != nil && !row.refused {
			t.Fatalf("%s: %v", row.name, err)
		}
		before := asked() - askedBefore
		b.flush(t)
		if after := scripts() - scriptsBefore - before; before != row.before || after != row.after {
			t.Errorf("%s: %d scripts before the answer and %d after it, want %d and %d", row.name, before, after, row.before, row.after)
		}
	}
}

// TestSubmit_DoesNotWaitForCache: updates of the cache do not delay an answer while Redis hangs.
func TestSubmit_DoesNotWaitForCache(t *testing.T) {
	t.Parallel()
	s, server := newServers(t), testenv.OwnRedis(t)
	s.redis = server.URL
	b := s.open(t, threeRules)
	b.submit(t, 10*time.Hour)
	testenv.Check(t, server.Pause())
	b.submit(t, 11*time.Hour) // loads the recipient
	soon, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := b.cache.Flush(soon); err == nil {
		t.Error("the cache was updated, although Redis hangs")
	}
	testenv.Check(t, server.Resume())
	b.flush(t)
	b.refused(t, 10*time.Hour)
	if b.metrics.of("cache blocked") != 1 {
		t.Error("the cache does not know the first push")
	}
}

// TestSubmit_CacheKnowsTooLittle: the cache finds a place that Postgres refuses, and must forget it.
func TestSubmit_CacheKnowsTooLittle(t *testing.T) {
	t.Parallel()
	first, second := branches(t)
	second.submit(t, time.Hour)
	first.refused(t, time.Hour+30*time.Second)
	first.flush(t)
	if first.metrics.of("cache free") == 0 {
		t.Fatal("the cache knew")
	}
	first.submit(t, time.Hour+80*time.Second) // far enough from the booking, but not from the refused push
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

// TestSubmit_CanceledReplay: a replay of a canceled push takes no place, in Postgres or in the cache.
func TestSubmit_CanceledReplay(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.submit(t, 10*time.Hour)
	b.submit(t, 11*time.Hour)
	submit := func() booking.Decision {
		b.flush(t)
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
	b.cache.Forget(quota.Recipient{Tenant: b.tenant, ID: "anna"}) // and with it, that the push is canceled
	b.flush(t)
	b.submit(t, 12*time.Hour)
	if again := submit(); again.Outcome != booking.Replayed || again.Push.Status != push.Canceled {
		t.Fatalf("%+v", again)
	}
	b.flush(t)
	b.submit(t, time.Hour)
	if b.metrics.of("cache blocked") != 0 {
		t.Error("the cache holds a place for it")
	}
}
