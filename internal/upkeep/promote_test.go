package upkeep_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/schedule"
	"github.com/sendquota/sendquota/internal/upkeep"
)

// ahead returns set counts for each lane, and records since when each was counted.
type ahead struct {
	answer push.Ahead
	err    error
	from   []time.Time
	times  int
}

func (a *ahead) Ahead(_ context.Context, lanes []push.CountedLane, _ time.Duration) (answers []push.Ahead, err error) {
	a.times++
	for _, l := range lanes {
		a.from, answers = append(a.from, l.Until), append(answers, a.answer)
	}
	return answers, a.err
}

// TestPromoter_Parts: a lane is armed once for each moment and 256 pushes. Armed moments are not counted again, unless
// their wake-ups may be lost.
func TestPromoter_Parts(t *testing.T) {
	t.Parallel()
	now := time.Now().UTC().Truncate(time.Second)
	at := func(seconds int) time.Time { return now.Add(time.Duration(seconds) * time.Second) }
	st := &ahead{answer: push.Ahead{Now: now, Until: at(60), Moments: []push.Moment{{At: at(1), Pushes: 1}, {At: at(2), Pushes: 256}, {At: at(3), Pushes: 513}}}}
	q := &queue{}
	p := upkeep.NewPromoter(st, q, all, handler(nil), quiet, nil, upkeep.PromoterConfig{Horizon: time.Minute, ArmLease: time.Minute})
	pass := func(wantErr error) {
		t.Helper()
		if full, err := p.Pass(t.Context()); full || !errors.Is(err, wantErr) {
			t.Fatalf("full %v, %v", full, err)
		}
	}
	pass(nil)
	var want []push.WakeUp
	for _, w := range []push.WakeUp{{At: at(1)}, {At: at(2)}, {At: at(3)}, {At: at(3), Part: 1}, {At: at(3), Part: 2}} {
		w.Lane, w.In = all[0], w.At.Sub(now)
		want = append(want, w)
	}
	if diff := cmp.Diff(want, q.take()); diff != "" {
		t.Error(diff)
	}
	st.answer.Moments = nil
	pass(nil)
	q.err, st.answer.Moments = errors.New("no Redis"), []push.Moment{{At: at(60), Pushes: 1}}
	pass(q.err)
	pass(q.err) // which counts nothing
	q.err = nil
	pass(nil)
	if diff := cmp.Diff([]time.Time{{}, at(60), at(60), {}}, st.from); diff != "" {
		t.Errorf("counted from: %s", diff)
	}
}

// TestPromoter_LaneComesAndGoes: pushes that another worker may have missed are counted.
func TestPromoter_LaneComesAndGoes(t *testing.T) {
	t.Parallel()
	now := time.Now()
	st := &ahead{answer: push.Ahead{Now: now, Until: now.Add(time.Minute)}}
	owned := &owns{push.Lanes(1)}
	p := upkeep.NewPromoter(st, &queue{}, owned, handler(nil), quiet, nil, upkeep.PromoterConfig{Horizon: time.Minute, ArmLease: time.Minute})
	for _, has := range []lanes{all, all, nil, all} {
		owned.lanes = has
		if _, err := p.Pass(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]time.Time{{}, st.answer.Until, {}}, st.from); diff != "" {
		t.Error(diff)
	}
}

// TestPromoter_Queries: lanes share a query once each of them has been counted alone.
func TestPromoter_Queries(t *testing.T) {
	t.Parallel()
	now := time.Now()
	st := &ahead{answer: push.Ahead{Now: now, Until: now.Add(time.Minute)}}
	p := upkeep.NewPromoter(st, &queue{}, lanes(push.Lanes(4)), handler(nil), quiet, nil, upkeep.PromoterConfig{Horizon: time.Minute, ArmLease: time.Minute})
	for _, want := range []int{4, 1, 1} {
		st.times, st.from = 0, nil
		if _, err := p.Pass(t.Context()); err != nil || st.times != want || len(st.from) != 4 {
			t.Errorf("%d queries for %d lanes, want %d; %v", st.times, len(st.from), want, err)
		}
	}
}

// owns is an owner whose lanes change.
type owns struct{ lanes lanes }

func (o *owns) Lanes() []push.Lane { return o.lanes }

// TestPromoter_Overdue: a lane with a push that has been due for a second is armed again. After the arm lease it is
// processed without the queue. Pushes that wait for their channel are ignored.
func TestPromoter_Overdue(t *testing.T) {
	t.Parallel()
	now := time.Now().UTC()
	for name, row := range map[string]struct {
		oldest  map[string]time.Duration
		armed   int
		handled int
	}{
		"due just now":       {map[string]time.Duration{"log": 900 * time.Millisecond}, 0, 0},
		"overdue":            {map[string]time.Duration{"log": 1100 * time.Millisecond}, 1, 0},
		"for too long":       {map[string]time.Duration{"log": time.Hour}, 1, 1},
		"a channel waits":    {map[string]time.Duration{"waits": time.Hour}, 0, 0},
		"another one is due": {map[string]time.Duration{"waits": time.Hour, "log": 2 * time.Second}, 1, 0},
		"nothing":            {nil, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			st, q := &ahead{answer: push.Ahead{Now: now, Until: now, Oldest: map[string]time.Time{}}}, &queue{}
			for channel, since := range row.oldest {
				st.answer.Oldest[channel] = now.Add(-since)
			}
			handled, found := make(chan push.WakeUp, 10), 0
			d := waits{handler(func(_ context.Context, w push.WakeUp) error { handled <- w; return errors.New("an error to log") })}
			p := upkeep.NewPromoter(st, q, all, d, quiet, func(n int) { found += n }, upkeep.PromoterConfig{Horizon: time.Minute, ArmLease: time.Minute})
			if _, err := p.Pass(t.Context()); err != nil {
				t.Fatal(err)
			}
			armed := q.take()
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			_ = p.Run(ctx) // waits for the deliveries
			if len(armed) != row.armed || len(handled) < row.handled || row.handled == 0 && len(handled) > 0 || (found > 0) != (row.handled > 0) {
				t.Errorf("armed %+v, handled %d wake-ups, found %d", armed, len(handled), found)
			}
		})
	}
}

// waits is a deliverer with a channel "waits" whose pushes must wait.
type waits struct{ handler }

func (waits) Backlogged(channel string) bool { return channel == "waits" }

// TestPromoter_ArmsWhatIsBooked: with a real store, pushes that become due within the horizon are armed for their
// moments, and no others.
func TestPromoter_ArmsWhatIsBooked(t *testing.T) {
	t.Parallel()
	b := setup(t, threeRules)
	began := time.Now() // one moment for all: two of them are due in the same second
	for i, in := range []time.Duration{30 * time.Second, 30 * time.Second, 50 * time.Second, time.Hour} {
		r := request(0)
		r.Recipient, r.SendAt = fmt.Sprint("r", i), began.Add(in)
		if _, err := b.Submit(t.Context(), b.tenant, r, schedule.Options{}); err != nil {
			t.Fatal(err)
		}
	}
	q := &queue{}
	p := upkeep.NewPromoter(b.store, q, all, handler(nil), quiet, nil, upkeep.PromoterConfig{Horizon: time.Minute, ArmLease: time.Minute})
	for range 2 {
		if _, err := p.Pass(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	armed := q.take()
	if len(armed) != 2 || armed[0].In > 31*time.Second || armed[1].In > 51*time.Second || armed[1].At.Sub(armed[0].At) != 20*time.Second || !armed[0].At.Equal(armed[0].At.Truncate(time.Second)) {
		t.Errorf("armed %+v", armed)
	}
}
