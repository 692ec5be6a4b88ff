package rest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
)

// TestMoments: twenty readers, every three seconds and each at its own time, cause at most one count a second, and readers
// at the same time wait for one count. An error is not cached, and tenants have separate counts.
func TestMoments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var (
			mu     sync.Mutex
			counts = map[uuid.UUID]int{}
			fails  error
		)
		counted := func(tenant uuid.UUID) int {
			mu.Lock()
			defer mu.Unlock()
			return counts[tenant]
		}
		fail := func(err error) {
			mu.Lock()
			defer mu.Unlock()
			fails = err
		}
		m := NewMoments(time.Now, func(_ context.Context, tenant uuid.UUID) (int, error) {
			time.Sleep(10 * time.Millisecond)
			mu.Lock()
			defer mu.Unlock()
			counts[tenant]++
			return counts[tenant], fails
		})
		a, b := uuid.New(), uuid.New()
		look := func(tenant uuid.UUID) {
			if _, err := m.Of(t.Context(), tenant); err != nil {
				t.Error(err)
			}
		}
		for i := range 20 {
			go func() {
				time.Sleep(time.Duration(i) * 150 * time.Millisecond)
				for range 10 {
					look(a)
					time.Sleep(3 * time.Second)
				}
			}()
		}
		time.Sleep(time.Minute)
		if n := counted(a); n < 10 || n > 31 {
			t.Errorf("counted %d times in 30 seconds for 200 looks", n)
		}
		for range 20 {
			go look(b)
		}
		synctest.Wait()
		time.Sleep(time.Second)
		if n := counted(b); n != 1 {
			t.Errorf("20 readers at the same time caused %d counts", n)
		}
		notNow := errors.New("not now")
		fail(notNow)
		if _, err := m.Of(t.Context(), b); !errors.Is(err, notNow) {
			t.Errorf("%v", err)
		}
		fail(nil)
		look(b)
		if n := counted(b); n != 3 {
			t.Errorf("after an error: counted %d times", n)
		}
	})
}
