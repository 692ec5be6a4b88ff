package upkeep_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sendquota/sendquota/internal/booking"
	"github.com/sendquota/sendquota/internal/testenv"
	"github.com/sendquota/sendquota/internal/upkeep"
)

// keeping counts a keeper's calls.
type keeping struct {
	mu            sync.Mutex
	made, dropped int
	kept          booking.Kept
	err           error
}

func (k *keeping) MakePartitions(context.Context) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.made++
	return 1, k.err
}

func (k *keeping) DropPartitions(_ context.Context, kept booking.Kept) ([]string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.dropped, k.kept = k.dropped+1, kept
	return []string{"pushes_20010101"}, nil
}

// TestKeeper: partitions are made and dropped at the start and every hour. A failure is logged, does not stop the other
// work, and is retried sooner.
func TestKeeper(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log testenv.Buffer
		st, kept := &keeping{}, booking.Kept{Pushes: 90 * 24 * time.Hour, Sends: time.Hour}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { _ = upkeep.NewKeeper(st, slog.New(slog.NewTextHandler(&log, nil)), kept).Run(ctx) }()
		synctest.Wait()
		st.mu.Lock()
		if st.made != 1 || st.dropped != 1 || st.kept != kept {
			t.Errorf("at the start: %+v", st)
		}
		st.err = errors.New("no room")
		st.mu.Unlock()
		time.Sleep(time.Hour + time.Minute)
		st.mu.Lock()
		if st.made != 2 || st.dropped != 2 || !strings.Contains(log.String(), "no room") || !strings.Contains(log.String(), "pushes_20010101") {
			t.Errorf("an hour later: %+v; %s", st, log.String())
		}
		st.mu.Unlock()
		time.Sleep(10 * time.Minute)
		st.mu.Lock()
		defer st.mu.Unlock()
		if st.made != 3 {
			t.Errorf("after a failure: %+v", st)
		}
	})
}
