package delivery

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/channel"
	"github.com/sendquota/sendquota/internal/channelhealth"
	"github.com/sendquota/sendquota/internal/push"
)

// reporterStore records what a reporter stores, after a number of failures.
type reporterStore struct {
	mu    sync.Mutex
	fail  int
	views [][]channelhealth.View
	left  []uuid.UUID

	counts [][]channelhealth.Outcomes
	asked  int // whether channels have become unhealthy
}

func (s *reporterStore) ReplaceChannelViews(_ context.Context, _ uuid.UUID, views []channelhealth.View) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail--; s.fail >= 0 {
		return errors.New("Postgres is away")
	}
	s.views = append(s.views, views)
	return nil
}

func (s *reporterStore) CountOutcomes(_ context.Context, _ uuid.UUID, counts []channelhealth.Outcomes) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail--; s.fail >= 0 {
		return errors.New("Postgres is away")
	}
	s.counts = append(s.counts, counts)
	return nil
}

func (s *reporterStore) NotifyUnhealthy(context.Context) ([]channelhealth.Unhealthy, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	return nil, nil
}

func (s *reporterStore) DeleteChannelViews(_ context.Context, worker uuid.UUID) error {
	s.left = append(s.left, worker)
	return nil
}

// TestReporter_Changes: a worker stores its view of its channels when one changes, at most once a second, and every ten
// seconds; and removes it when it stops.
func TestReporter_Changes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := newChannelQueue(channel.Entry{Name: "sms", Retry: push.Retry{First: time.Second, Max: time.Second}}, newSlots(10, 1))
		st, id := &reporterStore{}, uuid.New()
		two := []uuid.UUID{uuid.New(), uuid.New()} // a pause of one tenant is not the channel's
		r := NewReporter(&Worker{queues: &channelQueues{all: []*channelQueue{q}}}, st, id, slog.New(slog.DiscardHandler))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- r.Run(ctx) }()
		wants := func(after time.Duration, n int, last channelhealth.State, held time.Duration) {
			t.Helper()
			time.Sleep(after)
			synctest.Wait()
			st.mu.Lock()
			defer st.mu.Unlock()
			if len(st.views) != n || st.views[n-1][0] != (channelhealth.View{Channel: "sms", State: last, Held: held}) {
				t.Fatalf("told %d times: %v; want %d times, and at last %s for %s", len(st.views), st.views, n, last, held)
			}
		}
		wants(0, 1, channelhealth.Working, 0)
		wants(9500*time.Millisecond, 1, channelhealth.Working, 0)
		wants(time.Second, 2, channelhealth.Working, 0) // at 10 s
		for _, tenant := range two {
			q.hold(tenant, 1700*time.Millisecond) // until 12.2 s
		}
		q.signal()
		wants(time.Second, 3, channelhealth.Paused, 1200*time.Millisecond) // at 11 s
		wants(time.Second, 3, channelhealth.Paused, 1200*time.Millisecond)
		wants(time.Second, 4, channelhealth.Trying, 0) // at 13 s
		for range 100 {
			q.report(two[0], false)
			q.report(two[1], false)
		}
		st.mu.Lock()
		st.fail = 1 // it is tried again ten seconds later
		st.mu.Unlock()
		wants(time.Second, 4, channelhealth.Trying, 0)
		wants(10*time.Second, 5, channelhealth.Working, 0)
		cancel()
		if err := <-done; err != nil || !slices.Equal(st.left, []uuid.UUID{id}) {
			t.Errorf("%v, left: %v", err, st.left)
		}
	})
}

// TestReporter_CountsOutcomes: a worker adds what it has seen every five seconds, and keeps what could not be written. A
// refusal that is about one address, or asks for a pause, counts as an attempt alone.
func TestReporter_CountsOutcomes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, st, tenant := &Worker{queues: &channelQueues{}}, &reporterStore{}, uuid.New()
		r := NewReporter(w, st, uuid.New(), slog.New(slog.DiscardHandler))
		pass := func(wantErr bool) {
			t.Helper()
			if _, err := r.pass(t.Context()); (err != nil) != wantErr {
				t.Fatal(err)
			}
		}
		for range 3 {
			w.outcomes.note("sms", tenant, channel.Result{Outcome: push.Refused, Final: true})
			w.outcomes.note("sms", tenant, channel.Result{Outcome: push.Refused, Final: true, OneAddress: true, Unregistered: true})
			w.outcomes.note("sms", tenant, channel.Result{Outcome: push.Refused})
			w.outcomes.note("sms", tenant, channel.Result{Outcome: push.Delivered})
			w.outcomes.note("sms", tenant, channel.Result{Outcome: push.Unknown})
			w.outcomes.note("sms", tenant, channel.Result{Outcome: push.Refused, Down: true})
			w.outcomes.note("sms", tenant, channel.Result{Outcome: push.Refused, RetryAfter: time.Second})
			w.outcomes.note("sms", tenant, channel.Result{Outcome: push.Refused, OneAddress: true})
		}
		r.seen, r.seenAt = []channelhealth.View{}, time.Now() // a view has been stored
		st.fail = 1
		pass(true)
		pass(false)
		w.outcomes.note("sms", tenant, channel.Result{Outcome: push.Delivered})
		time.Sleep(countAgain - time.Nanosecond)
		pass(false)
		if want := [][]channelhealth.Outcomes{{{Tenant: tenant, Channel: "sms", Attempts: 24, Rejected: 3, Failed: 9}}}; !reflect.DeepEqual(st.counts, want) || st.asked != 1 {
			t.Errorf("%v, asked %d times; want %v", st.counts, st.asked, want)
		}
		time.Sleep(time.Nanosecond)
		pass(false)
		if len(st.counts) != 2 || st.asked != 2 {
			t.Errorf("%v, asked %d times", st.counts, st.asked)
		}
	})
}
