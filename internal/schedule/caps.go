package schedule

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/singleflight"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/store"
)

// tally knows how much tenants have under their caps. Postgres counts; the
// tally believes a count for a moment, in which it adds what was booked here:
// the fewer places it left the shorter, and so briefly that no tenant can have
// used them up elsewhere. A caller that waits for its answers meets its cap
// exactly, then; only requests at the same moment overshoot it together.
type tally struct {
	store counter
	now   func() time.Time

	asking singleflight.Group // whoever wants the same count at the same time shares it
	mu     sync.Mutex
	counts map[subject]count
}

// counter is what the tally asks.
type counter interface {
	Pending(ctx context.Context, tenant uuid.UUID, most int) (int, error)
	Recipients(ctx context.Context, tenant uuid.UUID, day store.Day, most int) (int, error)
}

// subject is what is counted: a tenant's pending pushes, or its recipients on a
// day.
type subject struct {
	tenant  uuid.UUID
	pending bool
	day     store.Day // unless pending
}

type count struct {
	used  int
	full  bool      // Postgres said so, not the tally's own adding
	until time.Time // when it is not believed any more
}

const (
	// A count is believed so long for each place that it left, a second at most.
	// Nobody books twenty thousand pushes a second.
	perPlace = 50 * time.Microsecond

	// One tenant's counting must not be what Postgres is busy with. Where a count
	// left no place it is believed so long for each that is used, unless one is
	// given back here; and under a larger cap, costShare times as long as it took.
	perUsed   = 20 * time.Microsecond
	largeCap  = 10_000
	costShare = 10

	maxCounts = 10_000 // that are remembered
)

func newTally(c counter, now func() time.Time) *tally {
	return &tally{store: c, now: now, counts: map[subject]count{}}
}

// allowance says what a tenant's caps leave for drafts. It is nil, and asks
// nobody, if there are no caps.
func (t *tally) allowance(ctx context.Context, tenant uuid.UUID, caps push.Caps, drafts []store.Draft) (*store.Allowance, error) {
	if caps == (push.Caps{}) || len(drafts) == 0 {
		return nil, nil
	}
	a := &store.Allowance{Caps: caps, Days: map[store.Day]int{}}
	if caps.PendingPushes > 0 {
		var err error
		if a.Pending, err = t.used(ctx, subject{tenant: tenant, pending: true}, caps.PendingPushes, len(drafts)); err != nil {
			return nil, err
		}
	}
	wanted := map[store.Day]int{}
	for _, d := range drafts {
		wanted[store.DayOf(d.Push.SendAt)]++
	}
	return a, t.countDays(ctx, tenant, a, wanted)
}

// countDays tells an allowance about days on which so many pushes are wanted.
func (t *tally) countDays(ctx context.Context, tenant uuid.UUID, a *store.Allowance, wanted map[store.Day]int) error {
	if a.RecipientsPerDay == 0 {
		return nil
	}
	for day, n := range wanted {
		var err error
		if a.Days[day], err = t.used(ctx, subject{tenant: tenant, day: day}, a.RecipientsPerDay, n); err != nil {
			return err
		}
	}
	return nil
}

// used says how much is used of a limit, of which n more is wanted.
func (t *tally) used(ctx context.Context, s subject, limit, n int) (int, error) {
	t.mu.Lock()
	c := t.counts[s]
	t.mu.Unlock()
	if t.now().Before(c.until) && (c.full || c.used+n <= limit || limit > largeCap) {
		return c.used, nil
	}
	asked, err, _ := t.asking.Do(fmt.Sprint(s, limit), func() (any, error) { return t.count(context.WithoutCancel(ctx), s, limit) })
	used, _ := asked.(int)
	return used, err
}

// count has Postgres count, one beyond the limit at most.
func (t *tally) count(ctx context.Context, s subject, limit int) (used int, err error) {
	began := t.now()
	if s.pending {
		used, err = t.store.Pending(ctx, s.tenant, limit+1)
	} else {
		used, err = t.store.Recipients(ctx, s.tenant, s.day, limit+1)
	}
	if err != nil {
		return 0, fmt.Errorf("count under a cap: %w", err)
	}
	now := t.now()
	believed := min(time.Duration(max(limit-used, 0))*perPlace, time.Second)
	full := used >= limit
	if full {
		believed = time.Duration(used) * perUsed
	}
	if limit > largeCap {
		believed = max(believed, costShare*now.Sub(began))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.counts) >= maxCounts {
		maps.DeleteFunc(t.counts, func(_ subject, c count) bool { return !now.Before(c.until) })
	}
	t.counts[s] = count{used, full, began.Add(believed)}
	return used, nil
}

// add tells the tally what was booked.
func (t *tally) add(tenant uuid.UUID, booked []store.Verdict) {
	t.mu.Lock()
	defer t.mu.Unlock()
	more := func(s subject) {
		if c, ok := t.counts[s]; ok {
			c.used++
			t.counts[s] = c
		}
	}
	for _, v := range booked {
		if v.Judgement == store.Booked {
			more(subject{tenant: tenant, pending: true})
		}
		if v.Newcomer {
			more(subject{tenant: tenant, day: store.DayOf(v.Push.SendAt)})
		}
	}
}

// forget has the tally ask again about a tenant that gave a place back.
func (t *tally) forget(tenant uuid.UUID, day store.Day) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.counts, subject{tenant: tenant, pending: true})
	delete(t.counts, subject{tenant: tenant, day: day})
}

// book has an order booked under the tenant's caps. Where a conflict would move
// pushes to days that were not counted, it counts those and comes again.
func (s *Service) book(ctx context.Context, tenant uuid.UUID, own push.OwnCaps, o store.Order) ([]store.Verdict, error) {
	var err error
	if o.Allowance, err = s.tally.allowance(ctx, tenant, own.Over(s.cfg.Caps), o.Drafts); err != nil {
		return nil, err
	}
	for {
		verdicts, err := s.store.Book(ctx, o)
		if err != nil || o.Allowance == nil {
			return verdicts, err
		}
		uncounted := map[store.Day]int{}
		for _, v := range verdicts {
			if v.Judgement == store.Uncounted {
				uncounted[v.Capped.Day]++
			}
		}
		if len(uncounted) == 0 {
			if booksAll := !o.Atomic || !slices.ContainsFunc(verdicts, notBooked); booksAll && !o.DryRun {
				s.tally.add(tenant, verdicts)
			}
			return verdicts, nil
		}
		if err := s.tally.countDays(ctx, tenant, o.Allowance, uncounted); err != nil {
			return nil, err
		}
	}
}

func notBooked(v store.Verdict) bool {
	return v.Judgement != store.Booked && v.Judgement != store.Replayed
}
