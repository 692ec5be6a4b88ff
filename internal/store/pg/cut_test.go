package pg_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/quota"
	"github.com/sendquota/sendquota/internal/store"
	"github.com/sendquota/sendquota/internal/store/pg"
	"github.com/sendquota/sendquota/internal/store/storetest"
)

// cutter cuts some of the store's connections in a loop, each time after more work was done, until it is stopped.
func (b *bundle) cutter(t *testing.T, done, cuts *atomic.Int64, stop <-chan struct{}) {
	for next := done.Load(); ; {
		select {
		case <-stop:
			return
		default:
		}
		if done.Load() < next {
			time.Sleep(time.Millisecond) // until more work was done, or the test stops it
			continue
		}
		next = done.Load() + int64(3+rand.N(6))
		cuts.Add(storetest.Ask[int64](t, b.Watch, `SELECT count(pg_terminate_backend(pid)) FROM (SELECT pid FROM pg_stat_activity
			WHERE datname = current_database() AND application_name = 'sendquota' ORDER BY random() LIMIT 4) a`))
	}
}

// TestBook_ConnectionsCut checks that while connections are cut, no time is booked twice, acknowledged bookings exist,
// and all other errors are [push.ErrUnavailable].
func TestBook_ConnectionsCut(t *testing.T) {
	t.Parallel()
	b := setupNew(t)
	policy := quota.Policy{{Name: "a", Limit: 1, Window: 10 * time.Second}, {Name: "b", Limit: 5, Window: 2 * time.Minute}}
	var (
		done, cuts                    atomic.Int64
		mu                            sync.Mutex
		booked                        []push.Push
		refused, unavailable, callers = 0, 0, 32
		workers, killer               sync.WaitGroup
		stop                          = make(chan struct{})
	)
	killer.Go(func() { b.cutter(t, &done, &cuts, stop) })
	enough := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(booked) >= 100 && refused >= 30 && cuts.Load() >= 30
	}
	for range callers {
		workers.Go(func() {
			for !enough() && !t.Failed() {
				d := storetest.Draft(b.TenantID, []string{"anna", "bert", "carl", "dora"}[rand.N(4)], time.Hour+time.Duration(rand.N(3600))*time.Second)
				v, err := b.Book(t.Context(), booking.Order{Drafts: []booking.Draft{d}, Policy: policy})
				done.Add(1)
				mu.Lock()
				switch {
				case errors.Is(err, push.ErrUnavailable):
					unavailable++
				case err != nil:
					t.Errorf("neither booked nor unavailable: %v", err)
				case v[0].Outcome == booking.Booked:
					booked = append(booked, v[0].Push)
				default:
					refused++
				}
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	close(stop)
	killer.Wait()
	b.Store = storetest.OpenURL(t, b.URL, store.Config{}) // with none of its connections cut
	t.Logf("%d booked, %d refused, %d unavailable; %d connections cut", len(booked), refused, unavailable, cuts.Load())
	for _, p := range booked {
		b.WantStatus(t, p, push.Scheduled)
	}
	b.MustAudit(t, policy)
	if len(booked) < 20 || refused < 20 || cuts.Load() < 20 {
		t.Error("too little happened to show anything")
	}
	if rows := storetest.Ask[int](t, b.DB, `SELECT count(*) FROM pushes`); rows > len(booked)+unavailable {
		t.Errorf("%d rows for %d acknowledged and %d unknown bookings", rows, len(booked), unavailable)
	}
}

// TestClaim_ConnectionsCut checks that while connections are cut, every push is attempted by one claimer at a time, and
// recorded once.
func TestClaim_ConnectionsCut(t *testing.T) {
	t.Parallel()
	b := setupNew(t)
	o := booking.Order{}
	for range 80 {
		o.Drafts = append(o.Drafts, storetest.Draft(b.TenantID, []string{"anna", "bert", "carl", "dora"}[rand.N(4)], 0))
	}
	if _, err := b.Book(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	var (
		done, cuts      atomic.Int64
		mu              sync.Mutex
		attempts        = map[uuid.UUID]int{}
		workers, killer sync.WaitGroup
		stop            = make(chan struct{})
	)
	killer.Go(func() { b.cutter(t, &done, &cuts, stop) })
	for i := range 8 {
		key := push.RecipientKey(b.TenantID, []string{"anna", "bert", "carl", "dora"}[i%4])
		workers.Go(func() {
			for b.MustDue(t, key) {
				c, err := b.Claim(t.Context(), booking.ClaimOrder{RecipientKey: key, Lease: time.Minute})
				if err == nil && c.Outcome == booking.Claimed {
					mu.Lock()
					attempts[c.Push.ID]++
					mu.Unlock()
					done.Add(1)
					f := storetest.Sent
					f.Attempt = c.Attempted()
					for _, err = b.Finish(t.Context(), f); errors.Is(err, push.ErrUnavailable); {
						_, err = b.Finish(t.Context(), f)
					}
				}
				if err != nil && !errors.Is(err, push.ErrUnavailable) {
					t.Error(err)
				}
			}
		})
	}
	workers.Wait()
	close(stop)
	killer.Wait()
	b.Store = storetest.OpenURL(t, b.URL, store.Config{}) // with none of its connections cut
	for _, d := range o.Drafts {
		if got := b.MustRead(t, d.Push); got.Status != push.Sent || got.Attempts != 1 || attempts[got.ID] != 1 {
			t.Errorf("%s is %s after %d recorded attempts and %d claims", got.ID, got.Status, got.Attempts, attempts[got.ID])
		}
	}
	b.MustAudit(t, nil)
	if t.Logf("%d connections cut", cuts.Load()); cuts.Load() < 20 {
		t.Error("too little happened to show anything")
	}
}

// TestStore_WithoutPostgres checks that without Postgres every method returns [push.ErrUnavailable] before its caller's
// context ends.
func TestStore_WithoutPostgres(t *testing.T) {
	t.Parallel()
	st := storetest.OpenURL(t, "postgres://nobody@127.0.0.1:1/none?sslmode=disable", pg.Config{Timeout: 500 * time.Millisecond})
	p := storetest.Draft(uuid.New(), "anna", time.Hour).Push
	for name, call := range map[string]func(ctx context.Context) error{
		"book": func(ctx context.Context) error {
			_, err := st.Book(ctx, booking.Order{Drafts: []booking.Draft{{Push: p}}})
			return err
		},
		"reschedule": func(ctx context.Context) error {
			_, err := st.Reschedule(ctx, booking.Order{Drafts: []booking.Draft{{Push: p}}})
			return err
		},
		"cancel": func(ctx context.Context) error { _, err := st.Cancel(ctx, p.Tenant, p.ID); return err },
		"claim":  func(ctx context.Context) error { _, err := st.Claim(ctx, booking.ClaimOrder{}); return err },
		"finish": func(ctx context.Context) error { _, err := st.Finish(ctx, booking.Finish{}); return err },
		"push":   func(ctx context.Context) error { _, err := st.Push(ctx, p.Tenant, p.ID); return err },
		"list": func(ctx context.Context) error {
			_, err := st.List(ctx, p.Tenant, push.Filter{}, push.Position{}, 1)
			return err
		},
		"bookings": func(ctx context.Context) error {
			_, _, err := st.Bookings(ctx, quota.Recipient{}, storetest.Began, storetest.Began, booking.MaxRead, false)
			return err
		},
		"claim all": func(ctx context.Context) error { _, err := st.ClaimAll(ctx, make([]booking.ClaimOrder, 1)); return err },
		"due":       func(ctx context.Context) error { _, _, err := st.Due(ctx, storetest.EveryDue(1)); return err },
		"ahead": func(ctx context.Context) error {
			_, err := st.Ahead(ctx, make([]push.CountedLane, 1), time.Minute)
			return err
		},
		"own": func(ctx context.Context) error {
			_, err := st.OwnLanes(ctx, uuid.New(), push.Lanes(1), time.Minute)
			return err
		},
		"leave":   func(ctx context.Context) error { return st.LeaveLanes(ctx, uuid.New()) },
		"expire":  func(ctx context.Context) error { _, err := st.Expire(ctx, push.Lanes(1), 1); return err },
		"lost":    func(ctx context.Context) error { _, err := st.Lost(ctx, push.Lanes(1), 1); return err },
		"backlog": func(ctx context.Context) error { _, _, err := st.Backlog(ctx); return err },
		"overdue": func(ctx context.Context) error { _, err := st.Overdue(ctx); return err },
		"key":     func(ctx context.Context) error { _, err := st.Key(ctx, [32]byte{}); return err },
		"tenant":  func(ctx context.Context) error { _, err := st.Tenant(ctx, "acme"); return err },
		"ready":   func(ctx context.Context) error { return st.Ready(ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // no method waits until its caller gives up
			defer cancel()
			if err := call(ctx); !errors.Is(err, push.ErrUnavailable) || ctx.Err() != nil {
				t.Errorf("%v", err)
			}
		})
	}
}
