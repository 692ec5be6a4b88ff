package httpapi

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
)

// TestMoments: twenty that look every three seconds, each at a time of its own, have it counted once a second at most, and those
// who look at the same time wait for one count. An error is not kept, and tenants have counts of their own.
func TestMoments(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		counts, fails := map[uuid.UUID]int{}, error(nil)
		m := newMoments(time.Now, func(_ context.Context, tenant uuid.UUID) (int, error) {
			time.Sleep(10 * time.Millisecond)
			counts[tenant]++
			return counts[tenant], fails
		})
		a, b := uuid.New(), uuid.New()
		look := func(tenant uuid.UUID) {
			if _, err := m.of(t.Context(), tenant); err != nil {
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
		if counts[a] < 10 || counts[a] > 31 {
			t.Errorf("counted %d times in 30 seconds for 200 looks", counts[a])
		}
		for range 20 {
			go look(b)
		}
		synctest.Wait()
		time.Sleep(time.Second)
		if counts[b] != 1 {
			t.Errorf("20 who look at the same time had it counted %d times", counts[b])
		}
		fails = errors.New("not now")
		if _, err := m.of(t.Context(), b); !errors.Is(err, fails) {
			t.Errorf("%v", err)
		}
		fails = nil
		look(b)
		if counts[b] != 3 {
			t.Errorf("after an error: counted %d times", counts[b])
		}
	})
}
