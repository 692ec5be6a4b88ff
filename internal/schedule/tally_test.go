package schedule

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store"
)

// clerk counts what it is told to, and how often it was asked.
type clerk struct {
	used, asked, most int
	takes             func()
	err               error
}

func (c *clerk) Pending(_ context.Context, _ uuid.UUID, most int) (int, error) {
	c.asked++
	c.most = most
	if c.takes != nil {
		c.takes()
	}
	return c.used, c.err
}

func (c *clerk) Recipients(ctx context.Context, tenant uuid.UUID, _ store.Day, most int) (int, error) {
	return c.Pending(ctx, tenant, most)
}

// TestTallyAsksSeldom: far from its cap a tenant costs a query a second, near it
// one for each request, and without a cap none.
func TestTallyAsksSeldom(t *testing.T) {
	now, tenant := time.Now(), uuid.New()
	c := &clerk{}
	tl := newTally(c, func() time.Time { return now })
	take := func(limit, wanted int) *hold {
		t.Helper()
		h, err := tl.hold(t.Context(), tenant, push.Caps{PendingPushes: limit}, wanted, nil)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	ask := func(limit, wanted, wantUsed, wantAsked int) {
		t.Helper()
		before := c.asked
		h := take(limit, wanted)
		defer h.release()
		if h.Pending != wantUsed || c.asked-before != wantAsked {
			t.Errorf("used %+v after %d questions, want %d after %d", h.Pending, c.asked-before, wantUsed, wantAsked)
		}
	}
	booked := func(limit, n int) {
		t.Helper()
		decisions := slices.Repeat([]store.Decision{{Outcome: store.Booked}, {Outcome: store.Refused}, {Outcome: store.OverCap}}, n)
		take(limit, n).settle(decisions)
	}
	if h, err := tl.hold(t.Context(), tenant, push.Caps{}, 1, nil); h != nil || err != nil || c.asked != 0 {
		t.Errorf("no caps: %+v, %v, %d questions", h, err, c.asked)
	}
	ask(100_000, 1, 0, 1)
	if c.most != 100_001 {
		t.Errorf("it counts to %d", c.most)
	}
	booked(100_000, 900)
	now = now.Add(time.Second - 1)
	ask(100_000, 100, 900, 0)
	now = now.Add(1)
	c.used = 899
	ask(100_000, 1, 899, 1)

	// With ten places left the count is good for half a millisecond, and for no
	// more than ten.
	tenant, c.used = uuid.New(), 90
	ask(100, 1, 90, 1)
	now = now.Add(499 * time.Microsecond)
	ask(100, 10, 90, 0)
	ask(100, 11, 90, 1)
	now = now.Add(500 * time.Microsecond)
	ask(100, 1, 90, 1)
	booked(100, 10)
	ask(100, 1, 90, 1) // what seems full is looked at
	c.used = 100
	booked(100, 10)
	ask(100, 1, 100, 1)
	now = now.Add(2*time.Millisecond - 1)
	c.used = 99
	ask(100, 1, 100, 0) // it is full for two milliseconds
	now = now.Add(1)
	ask(100, 1, 99, 1)
	c.used = 100
	ask(100, 2, 100, 1)
	c.used = 99
	tl.forget(tenant, store.DayOf(time.Time{})) // or until something is given back
	ask(100, 1, 99, 1)

	// What takes long is not asked for all the time, even when nothing is left.
	tenant, c.used = uuid.New(), 20_001
	c.takes = func() { now = now.Add(200 * time.Millisecond) }
	ask(20_000, 1, 20_001, 1)
	now = now.Add(1799 * time.Millisecond)
	ask(20_000, 1, 20_001, 0)
	now = now.Add(time.Millisecond)
	ask(20_000, 1, 20_001, 1)

	// Of the places of a day, only newcomers take one.
	tenant, c.used, c.takes = uuid.New(), 0, nil
	day := push.Caps{RecipientsPerDay: 1000}
	today := map[store.Day]int{store.DayOf(time.Time{}): 1}
	for _, v := range []store.Decision{{Outcome: store.Booked, Newcomer: true}, {Outcome: store.Booked}, {Outcome: store.Replayed}} {
		h, err := tl.hold(t.Context(), tenant, day, 1, today)
		if err != nil {
			t.Fatal(err)
		}
		h.settle([]store.Decision{v})
	}
	if h, err := tl.hold(t.Context(), tenant, day, 1, today); err != nil || h.Days[store.DayOf(time.Time{})] != 1 {
		t.Errorf("one newcomer among three is %+v (%v)", h, err)
	}

	c.err = errors.New("Postgres is gone")
	if _, err := tl.hold(t.Context(), uuid.New(), push.Caps{RecipientsPerDay: 1}, 1, today); !errors.Is(err, c.err) {
		t.Errorf("%v", err)
	}
}

// TestTallyForgets what is not believed any more.
func TestTallyForgets(t *testing.T) {
	now := time.Now()
	tl := newTally(&clerk{}, func() time.Time { return now })
	for i := range maxCounts + 1 {
		if i == maxCounts {
			now = now.Add(time.Second)
		}
		h, err := tl.hold(t.Context(), uuid.New(), push.Caps{PendingPushes: 1_000_000}, 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		h.release()
	}
	if n := len(tl.places); n != 1 {
		t.Errorf("%d counts are remembered", n)
	}
}

// TestHeldPlaces: who finds too few places waits for those who hold some, and
// then takes what these gave back; what may have been booked counts, whatever
// Postgres said meanwhile.
func TestHeldPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tenant, c := uuid.New(), &clerk{used: 97}
		tl := newTally(c, time.Now)
		take := func(n int) *hold {
			h, err := tl.hold(t.Context(), tenant, push.Caps{PendingPushes: 100}, n, nil)
			if err != nil {
				t.Error(err)
			}
			return h
		}
		want := func(h *hold, used, took int) {
			t.Helper()
			if got := h.took[subject{tenant: tenant, pending: true}]; h.Pending != used || got != took {
				t.Errorf("took %d at %d used, want %d at %d", got, h.Pending, took, used)
			}
		}
		first, second := take(1), take(1)
		want(first, 97, 1)
		want(second, 98, 1)
		var third, fourth *hold
		go func() { third = take(3) }()
		synctest.Wait()
		go func() { fourth = take(1) }()
		synctest.Wait()
		if third != nil || fourth != nil {
			t.Fatal("places were given twice")
		}

		// The second booked nothing, and nobody can tell of the first: Postgres has not seen it.
		second.release()
		synctest.Wait()
		if third != nil {
			t.Fatal("the third did not wait for all others")
		}
		c.used = 98
		first.doubt()
		synctest.Wait()
		want(third, 98, 2)
		if fourth != nil {
			t.Fatal("the fourth did not wait for the third")
		}
		c.used = 100
		third.settle([]store.Decision{{Outcome: store.Booked}, {Outcome: store.Booked}})
		synctest.Wait()
		want(fourth, 100, 0)
		fourth.release()

		// A booking that ends while Postgres counts may not be in the count.
		tenant, c.used = uuid.New(), 98
		first = take(1)
		time.Sleep(time.Millisecond)
		c.takes = func() { first.settle([]store.Decision{{Outcome: store.Booked}}); c.takes = nil }
		want(take(1), 99, 1)

		// Who goes away while it waits leaves nothing behind.
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			if h, err := tl.hold(ctx, tenant, push.Caps{PendingPushes: 100}, 1, nil); h != nil || !errors.Is(err, context.Canceled) {
				t.Errorf("%+v, %v", h, err)
			}
		}()
		synctest.Wait()
		cancel()
		synctest.Wait()
		if users := tl.places[subject{tenant: tenant, pending: true}].users; users != 1 {
			t.Errorf("%d hold places, want 1", users)
		}
	})
}
