package bulkhead

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func acquire(t *testing.T, b *Bulkhead[string], tenant string, units int64) *Loan[string] {
	t.Helper()
	l, err := b.Acquire(t.Context(), tenant, units)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// later acquires units in a goroutine, and sends the tenant when it has got them.
func later(t *testing.T, b *Bulkhead[string], tenant string, units int64, got chan<- string) {
	t.Helper()
	go func() {
		l, err := b.Acquire(t.Context(), tenant, units)
		if err != nil {
			return
		}
		got <- tenant
		<-t.Context().Done()
		l.Release()
	}()
	synctest.Wait()
}

// TestBulkhead_PartOfTenant: a tenant that has used up its share waits, and no other tenant waits for it.
func TestBulkhead_PartOfTenant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, got := New[string](10, 6), make(chan string, 10)
		greedy := acquire(t, b, "a", 6)
		later(t, b, "a", 1, got)
		later(t, b, "b", 4, got)
		if len(got) != 1 || <-got != "b" {
			t.Error("b did not get what is left")
		}
		greedy.Shrink(2)
		synctest.Wait()
		if len(got) != 1 || <-got != "a" {
			t.Error("a did not get what it gave back")
		}
	})
}

// TestBulkhead_TryAcquire: it lends free units, waits for nothing, overtakes no waiting tenant, and leaves no tenant
// behind.
func TestBulkhead_TryAcquire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, got := New[string](10, 6), make(chan string, 10)
		try := func(tenant string, units int64, want bool) *Loan[string] {
			t.Helper()
			l, ok := b.TryAcquire(tenant, units)
			if ok != want {
				t.Fatalf("%d for %s: %t, want %t", units, tenant, ok, want)
			}
			return l
		}
		greedy := try("a", 8, true) // 6, its whole share
		try("a", 1, false)
		other := try("b", 3, true)
		later(t, b, "c", 2, got)
		try("d", 1, false) // c is before it
		if _, known := b.tenants["d"]; known {
			t.Error("a tenant that has and wants nothing is kept")
		}
		greedy.Release()
		synctest.Wait()
		if len(got) != 1 {
			t.Error("c did not get what it waited for")
		}
		try("d", 1, true).Release()
		other.Release()
	})
}

// TestBulkhead_SeveralLeaveRoom: however many tenants take all that they can get, the next one finds as much as each of
// them has.
func TestBulkhead_SeveralLeaveRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New[int](120, 80)
		for n := range 5 {
			var full *FullError
			for range 100 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
				if _, err := b.Acquire(ctx, n, 1); err != nil && (!errors.As(err, &full) || !full.Own) {
					t.Fatalf("tenant %d: %v", n, err)
				}
				cancel()
			}
			if full == nil {
				t.Fatalf("tenant %d got all that it wanted", n)
			}
			if got, left := b.tenants[n].used, b.total-b.used; got < left || left < 1 {
				t.Errorf("tenant %d has %d, and leaves %d", n, got, left)
			}
		}
	})
}

// TestBulkhead_TenantsTakeTurns: another tenant waits for at most one of a hundred requests of one tenant.
func TestBulkhead_TenantsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, got := New[string](2, 2), make(chan string, 200)
		all := acquire(t, b, "c", 2)
		for range 100 {
			later(t, b, "a", 1, got)
		}
		later(t, b, "b", 1, got)
		all.Release()
		synctest.Wait()
		if len(got) != 2 {
			t.Fatalf("%d got a unit, want 2", len(got))
		}
		if first, second := <-got, <-got; first == second {
			t.Errorf("%s got both units", first)
		}
	})
}

// TestBulkhead_LargeRequestKeepsItsTurn: small requests do not overtake it forever.
func TestBulkhead_LargeRequestKeepsItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, got := New[string](10, 10), make(chan string, 10)
		one, two := acquire(t, b, "a", 5), acquire(t, b, "b", 4)
		later(t, b, "large", 8, got)
		later(t, b, "small", 1, got)
		if len(got) != 0 {
			t.Fatalf("%s passed the large request", <-got)
		}
		two.Release()
		synctest.Wait()
		if len(got) != 0 {
			t.Fatalf("%s passed the large request", <-got)
		}
		one.Release()
		synctest.Wait()
		if len(got) != 2 {
			t.Errorf("%d were served, want both", len(got))
		}
	})
}

// TestBulkhead_MoreThanThereIs: a request for more than the share gets the share.
func TestBulkhead_MoreThanThereIs(t *testing.T) {
	b := New[string](10, 6)
	l := acquire(t, b, "a", 1000)
	if b.used != 6 {
		t.Errorf("%d units are lent, want 6", b.used)
	}
	l.Release()
	l.Release()
	(*Loan[string])(nil).Release()
	acquire(t, b, "nothing", 0).Release()
	if b.used != 0 || len(b.tenants) != 0 {
		t.Errorf("%d units are still lent, to %d tenants", b.used, len(b.tenants))
	}
}

// TestBulkhead_GivingUp: it leaves nothing behind, and lets the requests behind it pass.
func TestBulkhead_GivingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, got := New[string](10, 10), make(chan string, 10)
		half := acquire(t, b, "a", 5)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		failed := make(chan error, 1)
		go func() {
			_, err := b.Acquire(ctx, "large", 8)
			var full *FullError
			if !errors.As(err, &full) || full.Own {
				t.Errorf("everything is in use: %v", err)
			}
			failed <- err
		}()
		synctest.Wait()
		later(t, b, "small", 1, got)
		if err := <-failed; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it gave up with %v", err)
		}
		synctest.Wait()
		if len(got) != 1 {
			t.Error("the request behind it still waits")
		}
		half.Release()
	})
}

// TestBulkhead_OwnPartIsFull: the error names the tenant's own share as the cause.
func TestBulkhead_OwnPartIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := New[string](10, 6)
		defer acquire(t, b, "a", 6).Release()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		var full *FullError
		if _, err := b.Acquire(ctx, "a", 1); !errors.As(err, &full) || !full.Own {
			t.Errorf("it gave up with %v", err)
		}
	})
}

// TestBulkhead_Storm: the bounds always hold, and at the end nothing is lent and no tenant is remembered.
func TestBulkhead_Storm(t *testing.T) {
	const total, each = 20, 8
	b := New[int](total, each)
	var (
		wg     sync.WaitGroup
		used   atomic.Int64
		byEach [5]atomic.Int64
		lent   atomic.Int64
	)
	for i := range 64 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(1, uint64(i)))
			for range 300 {
				tenant, units := r.IntN(5), 1+r.Int64N(each)
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(r.IntN(2000))*time.Microsecond)
				l, err := b.Acquire(ctx, tenant, units)
				cancel()
				if err != nil {
					continue
				}
				lent.Add(1)
				if used.Add(units) > total || byEach[tenant].Add(units) > each {
					t.Error("more is lent than there is")
				}
				if kept := units / 2; r.IntN(2) == 0 {
					used.Add(kept - units)
					byEach[tenant].Add(kept - units)
					l.Shrink(kept)
					units = kept
				}
				used.Add(-units)
				byEach[tenant].Add(-units)
				l.Release()
			}
		})
	}
	wg.Wait()
	if lent.Load() == 0 {
		t.Error("nothing was ever lent: nothing was tested")
	}
	if b.used != 0 || len(b.tenants) != 0 || b.turns.Len() != 0 {
		t.Errorf("left behind: %d units, %d tenants, %d turns", b.used, len(b.tenants), b.turns.Len())
	}
}

func BenchmarkBulkhead(b *testing.B) {
	h := New[int](1<<20, 1<<20)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			l, _ := h.Acquire(b.Context(), 1, 100)
			l.Release()
		}
	})
}

// TestCompany: a piece of work weighs more while several tenants are active.
func TestCompany(t *testing.T) {
	t.Parallel()
	var c Neighbours[string]
	for range 3 {
		c.Seen("anna")
		if c.Several() || c.Weight() != 1 {
			t.Fatal("she is alone")
		}
	}
	c.Seen("bert")
	if !c.Several() || c.Weight() != 2 {
		t.Error("they are two")
	}
	for c.Several() {
		c.Seen("bert")
		time.Sleep(time.Millisecond)
	}
	if c.Weight() != 1 {
		t.Error("he is alone now")
	}
}
