package schedule_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/schedule"
)

// ahead answers what is ahead of each lane, and notes from when on it was asked.
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

// TestPromoter_Parts: a lane is armed once for each moment and 256 pushes, and what was armed is not counted again,
// unless it may be lost.
func TestPromoter_Parts(t *testing.T) {
	t.Parallel()
	now := time.Now().UTC().Truncate(time.Second)
	at := func(seconds int) time.Time { return now.Add(time.Duration(seconds) * time.Second) }
	st := &ahead{answer: push.Ahead{Now: now, Until: at(60), Moments: []push.Moment{{At: at(1), Pushes: 1}, {At: at(2), Pushes: 256}, {At: at(3), Pushes: 513}}}}
	q := &queue{}
	p := schedule.NewPromoter(st, q, all, handler(nil), quiet, nil, schedule.PromoterConfig{Horizon: time.Minute, ArmLease: time.Minute})
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

// TestPromoter_LaneComesAndGoes: what another worker may have neglected is counted.
func TestPromoter_LaneComesAndGoes(t *testing.T) {
	t.Parallel()
	now := time.Now()
	st := &ahead{answer: push.Ahead{Now: now, Until: now.Add(time.Minute)}}
	owned := &owns{push.Lanes(1)}
	p := schedule.NewPromoter(st, &queue{}, owned, handler(nil), quiet, nil, schedule.PromoterConfig{Horizon: time.Minute, ArmLease: time.Minute})
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

// TestPromoter_Questions: lanes are asked for together once each of them has been counted alone.
func TestPromoter_Questions(t *testing.T) {
	t.Parallel()
	now := time.Now()
	st := &ahead{answer: push.Ahead{Now: now, Until: now.Add(time.Minute)}}
	p := schedule.NewPromoter(st, &queue{}, lanes(push.Lanes(4)), handler(nil), quiet, nil, schedule.PromoterConfig{Horizon: time.Minute, ArmLease: time.Minute})
	for _, want := range []int{4, 1, 1} {
		st.times, st.from = 0, nil
		if _, err := p.Pass(t.Context()); err != nil || st.times != want || len(st.from) != 4 {
			t.Errorf("%d questions for %d lanes, want %d; %v", st.times, len(st.from), want, err)
		}
	}
}

// owns is what a worker owns now.
type owns struct{ lanes lanes }

func (o *owns) Lanes() []push.Lane { return o.lanes }

// TestPromoter_Overdue: a lane with something that has been due for a second is armed again, and looked at without the
// queue after the arm lease, but not for what waits for its channel.
func TestPromoter_Overdue(t *testing.T) {
	t.Parallel()
	now := time.Now().UTC()
	for name, row := range map[string]struct {
		oldest map[string]time.Duration
		armed  int
		looked int
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
			looked, found := make(chan push.WakeUp, 10), 0
			d := waits{handler(func(_ context.Context, w push.WakeUp) error { looked <- w; return errors.New("which is logged") })}
			p := schedule.NewPromoter(st, q, all, d, quiet, func(n int) { found += n }, schedule.PromoterConfig{Horizon: time.Minute, ArmLease: time.Minute})
			if _, err := p.Pass(t.Context()); err != nil {
				t.Fatal(err)
			}
			armed := q.take()
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			_ = p.Run(ctx) // waits for the looks
			if len(armed) != row.armed || len(looked) < row.looked || row.looked == 0 && len(looked) > 0 || (found > 0) != (row.looked > 0) {
				t.Errorf("armed %+v, looked %d times, found %d", armed, len(looked), found)
			}
		})
	}
}

// waits is a deliverer for which the channel waits has to wait.
type waits struct{ handler }

func (waits) Waits(channel string) bool { return channel == "waits" }

// TestPromoter_ArmsWhatIsBooked: by a real store, everything that becomes due within the horizon is armed for its
// moment, and nothing else.
func TestPromoter_ArmsWhatIsBooked(t *testing.T) {
	t.Parallel()
	b := ownServers(t).open(t, threeRules)
	began := time.Now() // one moment for all: two of them are due in the same second
	for i, in := range []time.Duration{30 * time.Second, 30 * time.Second, 50 * time.Second, time.Hour} {
		r := request(0)
		r.Recipient, r.SendAt = fmt.Sprint("r", i), began.Add(in)
		if _, err := b.Submit(t.Context(), b.tenant, r, schedule.Options{}); err != nil {
			t.Fatal(err)
		}
	}
	q := &queue{}
	p := schedule.NewPromoter(b.store, q, all, handler(nil), quiet, nil, schedule.PromoterConfig{Horizon: time.Minute, ArmLease: time.Minute})
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
