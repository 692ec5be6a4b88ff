package schedule

import (
	"context"
	"errors"
	"testing"
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
	ask := func(limit, wanted, wantUsed, wantAsked int) {
		t.Helper()
		before := c.asked
		a, err := tl.allowance(t.Context(), tenant, push.Caps{PendingPushes: limit}, make([]store.Draft, wanted))
		if err != nil || a.Pending != wantUsed || c.asked-before != wantAsked {
			t.Errorf("used %+v after %d questions, want %d after %d (%v)", a, c.asked-before, wantUsed, wantAsked, err)
		}
	}
	booked := func(n int) {
		for range n {
			tl.add(tenant, []store.Verdict{{Judgement: store.Booked}, {Judgement: store.Refused}, {Judgement: store.OverCap}})
		}
	}
	if a, err := tl.allowance(t.Context(), tenant, push.Caps{}, make([]store.Draft, 1)); a != nil || err != nil || c.asked != 0 {
		t.Errorf("no caps: %+v, %v, %d questions", a, err, c.asked)
	}
	ask(100_000, 1, 0, 1)
	if c.most != 100_001 {
		t.Errorf("it counts to %d", c.most)
	}
	booked(900)
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
	booked(10)
	ask(100, 1, 90, 1) // what seems full is looked at
	c.used = 100
	booked(10)
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
	for _, v := range []store.Verdict{{Judgement: store.Booked, Newcomer: true}, {Judgement: store.Booked}, {Judgement: store.Replayed}} {
		if _, err := tl.allowance(t.Context(), tenant, day, make([]store.Draft, 1)); err != nil {
			t.Fatal(err)
		}
		tl.add(tenant, []store.Verdict{v})
	}
	if a, err := tl.allowance(t.Context(), tenant, day, make([]store.Draft, 1)); err != nil || a.Days[store.DayOf(time.Time{})] != 1 {
		t.Errorf("one newcomer among three is %+v (%v)", a, err)
	}

	c.err = errors.New("Postgres is gone")
	if _, err := tl.allowance(t.Context(), uuid.New(), push.Caps{RecipientsPerDay: 1}, make([]store.Draft, 1)); !errors.Is(err, c.err) {
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
		if _, err := tl.allowance(t.Context(), uuid.New(), push.Caps{PendingPushes: 1_000_000}, make([]store.Draft, 1)); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(tl.counts); n != 1 {
		t.Errorf("%d counts are remembered", n)
	}
}
