package upkeep

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestThrottle: slow searches run less often, except after a full one. They take a fiftieth of the time.
func TestThrottle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s throttle
		for _, row := range []struct {
			takes time.Duration
			full  bool
			err   error
			next  time.Duration
		}{
			{0, false, nil, 0},
			{10 * time.Millisecond, false, nil, 500 * time.Millisecond},
			{5 * time.Second, false, errors.New("no answer"), 10 * time.Second},
			{time.Second, true, nil, time.Second},
			{time.Second, false, nil, 50 * time.Second},
			{2 * time.Second, false, nil, time.Minute},
		} {
			began := time.Now() // on the clock of the bubble
			full, err := s.run(func() (bool, error) { time.Sleep(row.takes); return row.full, row.err })
			if full != row.full || !errors.Is(err, row.err) {
				t.Errorf("%+v: %v, %v", row, full, err)
			}
			for searched := false; !searched; time.Sleep(time.Millisecond) {
				if _, err := s.run(func() (bool, error) { searched = true; return true, nil }); err != nil {
					t.Fatal(err)
				}
				if next := time.Since(began); searched && next != row.next {
					t.Errorf("%+v: the next search came after %s", row, next)
				}
			}
		}
	})
}
