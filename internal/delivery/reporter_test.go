package delivery

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/channel"
	"github.com/sendquota/sendquota/internal/push"
)

// told keeps what a reporter tells, after a number of failures.
type told struct {
	mu    sync.Mutex
	fail  int
	views [][]push.ChannelView
	left  []uuid.UUID
}

func (s *told) SeeChannels(_ context.Context, _ uuid.UUID, views []push.ChannelView) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail--; s.fail >= 0 {
		return errors.New("Postgres is away")
	}
	s.views = append(s.views, views)
	return nil
}

func (s *told) LeaveChannels(_ context.Context, worker uuid.UUID) error {
	s.left = append(s.left, worker)
	return nil
}

// TestReporter_TellsChanges: a worker tells how its channels are when one changes, at most once a second, and every ten
// seconds; and when it leaves.
func TestReporter_TellsChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newChannelQueue(channel.Entry{Name: "sms", Retry: push.Retry{First: time.Second, Max: time.Second}}, newSlots(10, 1))
		st, id := &told{}, uuid.New()
		two := []uuid.UUID{uuid.New(), uuid.New()} // a pause of one tenant is not the channel's
		r := NewReporter(&Worker{queues: &channelQueues{all: []*channelQueue{q}}}, st, id, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- r.Run(ctx) }()
		wants := func(after time.Duration, n int, last push.ChannelState, held time.Duration) {
			t.Helper()
			time.Sleep(after)
			synctest.Wait()
			st.mu.Lock()
			defer st.mu.Unlock()
			if len(st.views) != n || st.views[n-1][0] != (push.ChannelView{Channel: "sms", State: last, Held: held}) {
				t.Fatalf("told %d times: %v; want %d times, and at last %s for %s", len(st.views), st.views, n, last, held)
			}
		}
		wants(0, 1, push.ChannelWorking, 0)
		wants(9500*time.Millisecond, 1, push.ChannelWorking, 0)
		wants(time.Second, 2, push.ChannelWorking, 0) // at 10 s
		for _, tenant := range two {
			q.hold(tenant, 1700*time.Millisecond) // until 12.2 s
		}
		q.signal()
		wants(time.Second, 3, push.ChannelPaused, 1200*time.Millisecond) // at 11 s
		wants(time.Second, 3, push.ChannelPaused, 1200*time.Millisecond)
		wants(time.Second, 4, push.ChannelTrying, 0) // at 13 s
		for range 100 {
			q.report(two[0], false)
			q.report(two[1], false)
		}
		st.mu.Lock()
		st.fail = 1 // it is tried again ten seconds later
		st.mu.Unlock()
		wants(time.Second, 4, push.ChannelTrying, 0)
		wants(10*time.Second, 5, push.ChannelWorking, 0)
		cancel()
		if err := <-done; err != nil || !slices.Equal(st.left, []uuid.UUID{id}) {
			t.Errorf("%v, left: %v", err, st.left)
		}
	})
}
