package schedule

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
)

// fakeCounts returns set counts, and counts the queries.
type fakeCounts struct {
	used, asked, most int
	takes             func()
	err               error
}

func (c *fakeCounts) Pending(_ context.Context, _ uuid.UUID, most int) (int, error) {
	c.asked++
	c.most = most
	if c.takes != nil {
		c.takes()
	}
	return c.used, c.err
}

func (c *fakeCounts) Recipients(ctx context.Context, tenant uuid.UUID, _ booking.Day, most int) (int, error) {
	return c.Pending(ctx, tenant, most)
}

// TestCapCounter_Trust: a tenant far from its cap costs a query a second, a tenant near it a query for each request,
// and a tenant without a cap none.
func TestCapCounter_Trust(t *testing.T) {
	now, tenant := time.Now(), uuid.New()
	c := &fakeCounts{}
	counter := newCapCounter(c, func() time.Time { return now })
	take := func(limit, wanted int) *reservation {
		t.Helper()
		r, err := counter.reserve(t.Context(), tenant, push.Caps{PendingPushes: limit}, wanted, nil)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	ask := func(limit, wanted, wantUsed, wantAsked int) {
		t.Helper()
		before := c.asked
		r := take(limit, wanted)
		defer r.release()
		if r.Pending != wantUsed || c.asked-before != wantAsked {
			t.Errorf("used %+v after %d counts, want %d after %d", r.Pending, c.asked-before, wantUsed, wantAsked)
		}
	}
	booked := func(limit, n int) {
		t.Helper()
		decisions := slices.Repeat([]booking.Decision{{Outcome: booking.Booked}, {Outcome: booking.NoPlace}, {Outcome: booking.OverCap}}, n)
		take(limit, n).settle(decisions)
	}
	if r, err := counter.reserve(t.Context(), tenant, push.Caps{}, 1, nil); r != nil || err != nil || c.asked != 0 {
		t.Errorf("no caps: %+v, %v, %d counts", r, err, c.asked)
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

	// With ten slots left, the count is trusted for half a millisecond, and for ten pushes.
	tenant, c.used = uuid.New(), 90
	ask(100, 1, 90, 1)
	now = now.Add(499 * time.Microsecond)
	ask(100, 10, 90, 0)
	ask(100, 11, 90, 1)
	now = now.Add(500 * time.Microsecond)
	ask(100, 1, 90, 1)
	booked(100, 10)
	ask(100, 1, 90, 1) // a full cap is counted again
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
	counter.forget(tenant, booking.DayOf(time.Time{})) // or until room is given back
	ask(100, 1, 99, 1)

	// A slow count is not repeated all the time, even when no room is left.
	tenant, c.used = uuid.New(), 20_001
	c.takes = func() { now = now.Add(200 * time.Millisecond) }
	ask(20_000, 1, 20_001, 1)
	now = now.Add(1799 * time.Millisecond)
	ask(20_000, 1, 20_001, 0)
	now = now.Add(time.Millisecond)
	ask(20_000, 1, 20_001, 1)

	// Only a new recipient of the day takes a slot of the day.
	tenant, c.used, c.takes = uuid.New(), 0, nil
	day := push.Caps{RecipientsPerDay: 1000}
	today := map[booking.Day]int{booking.DayOf(time.Time{}): 1}
	for _, v := range []booking.Decision{{Outcome: booking.Booked, NewRecipientOfDay: true}, {Outcome: booking.Booked}, {Outcome: booking.Replayed}} {
		r, err := counter.reserve(t.Context(), tenant, day, 1, today)
		if err != nil {
			t.Fatal(err)
		}
		r.settle([]booking.Decision{v})
	}
	if r, err := counter.reserve(t.Context(), tenant, day, 1, today); err != nil || r.Days[booking.DayOf(time.Time{})] != 1 {
		t.Errorf("one new recipient among three is %+v (%v)", r, err)
	}

	c.err = errors.New("Postgres is gone")
	if _, err := counter.reserve(t.Context(), uuid.New(), push.Caps{RecipientsPerDay: 1}, 1, today); !errors.Is(err, c.err) {
		t.Errorf("%v", err)
	}
}

// TestCapCounter_Forgets: expired counts are dropped.
func TestCapCounter_Forgets(t *testing.T) {
	now := time.Now()
	counter := newCapCounter(&fakeCounts{}, func() time.Time { return now })
	for i := range maxCounts + 1 {
		if i == maxCounts {
			now = now.Add(time.Second)
		}
		r, err := counter.reserve(t.Context(), uuid.New(), push.Caps{PendingPushes: 1_000_000}, 1, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.release()
	}
	if n := len(counter.counts); n != 1 {
		t.Errorf("%d counts are remembered", n)
	}
}

// TestCapCounter_Reservations: an order that finds too few slots waits for open reservations, and then takes the slots
// that these give back. A slot that may have been used counts, whatever Postgres counted meanwhile.
func TestCapCounter_Reservations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tenant, c := uuid.New(), &fakeCounts{used: 97}
		counter := newCapCounter(c, time.Now)
		take := func(n int) *reservation {
			r, err := counter.reserve(t.Context(), tenant, push.Caps{PendingPushes: 100}, n, nil)
			if err != nil {
				t.Error(err)
			}
			return r
		}
		want := func(r *reservation, used, took int) {
			t.Helper()
			if got := r.room[subject{tenant: tenant, pending: true}]; r.Pending != used || got != took {
				t.Errorf("took %d at %d used, want %d at %d", got, r.Pending, took, used)
			}
		}
		first, second := take(1), take(1)
		want(first, 97, 1)
		want(second, 98, 1)
		var third, fourth *reservation
		go func() { third = take(3) }()
		synctest.Wait()
		go func() { fourth = take(1) }()
		synctest.Wait()
		if third != nil || fourth != nil {
			t.Fatal("slots were given twice")
		}

		// The second booked nothing. The first is in doubt: Postgres has not seen it.
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
		third.settle([]booking.Decision{{Outcome: booking.Booked}, {Outcome: booking.Booked}})
		synctest.Wait()
		want(fourth, 100, 0)
		fourth.release()

		// A booking that ends while Postgres counts may be missing from the count.
		tenant, c.used = uuid.New(), 98
		first = take(1)
		time.Sleep(time.Millisecond)
		c.takes = func() { first.settle([]booking.Decision{{Outcome: booking.Booked}}); c.takes = nil }
		want(take(1), 99, 1)

		// A caller that stops waiting leaves nothing behind.
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			if r, err := counter.reserve(ctx, tenant, push.Caps{PendingPushes: 100}, 1, nil); r != nil || !errors.Is(err, context.Canceled) {
				t.Errorf("%+v, %v", r, err)
			}
		}()
		synctest.Wait()
		cancel()
		synctest.Wait()
		if users := counter.counts[subject{tenant: tenant, pending: true}].users; users != 1 {
			t.Errorf("%d reservations are open, want 1", users)
		}
	})
}
