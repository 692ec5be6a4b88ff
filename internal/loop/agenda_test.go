package loop

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sync/errgroup"
)

// passes runs loops on an agenda for ten seconds, and returns when each made its passes, and when the agenda looked. work says
// what there is to do at a time.
func passes(t *testing.T, every map[string]time.Duration, work func(a *Agenda[string], at time.Duration) ([]string, error)) (made map[string][]time.Duration) {
	t.Helper()
	began := time.Now()
	made = map[string][]time.Duration{}
	a := &Agenda[string]{Interval: 250 * time.Millisecond, Idle: time.Second, Log: slog.New(slog.DiscardHandler)}
	a.Poll = func(context.Context) ([]string, error) {
		made["agenda"] = append(made["agenda"], time.Since(began))
		return work(a, time.Since(began))
	}
	ctx, stop := context.WithTimeout(t.Context(), 9900*time.Millisecond)
	defer stop()
	var g errgroup.Group
	for name, interval := range every {
		ch := make(chan time.Duration, 100)
		l := a.Add(name, Loop{Interval: interval, Log: slog.New(slog.DiscardHandler), Pass: func(context.Context) (bool, error) {
			ch <- time.Since(began)
			return false, nil
		}})
		g.Go(func() error { return l.Run(ctx) })
		defer func() {
			close(ch)
			for at := range ch {
				made[name] = append(made[name], at)
			}
		}()
	}
	g.Go(func() error { return a.Run(ctx) })
	_ = g.Wait() // they always return nil
	return made
}

// A loop on an agenda makes a pass when it begins, and then only where there is work, no more often than its interval. Without any
// work the agenda looks each second; when there was some, or will be, each quarter of one.
func TestAgenda_Passes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const ms = time.Millisecond
		got := passes(t, map[string]time.Duration{"often": 100 * ms, "each second": time.Second, "never": time.Second}, func(a *Agenda[string], at time.Duration) ([]string, error) {
			if waited := at > 3*time.Second && at <= 5*time.Second; at > 0 && (a.HasWork("often") != waited || a.HasWork("never")) || at == 0 && !a.HasWork("never") {
				t.Errorf("after %v there is work: %v", at, a.HasWork("often"))
			}
			if at >= 3*time.Second && at < 5*time.Second {
				return []string{"often", "each second", "unknown"}, nil
			}
			return nil, nil
		})
		for name, want := range map[string][]time.Duration{
			"never":       {0},
			"each second": {0, 3000 * ms, 4000 * ms},
			"often":       {0, 3000 * ms, 3250 * ms, 3500 * ms, 3750 * ms, 4000 * ms, 4250 * ms, 4500 * ms, 4750 * ms},
			"agenda": {
				0, 1000 * ms, 2000 * ms, 3000 * ms, 3250 * ms, 3500 * ms, 3750 * ms, 4000 * ms, 4250 * ms, 4500 * ms, 4750 * ms, 5000 * ms, 5250 * ms,
				5500 * ms, 5750 * ms, 6000 * ms, 6250 * ms, 6500 * ms, 6750 * ms, 7750 * ms, 8750 * ms, 9750 * ms,
			},
		} {
			if !slices.Equal(got[name], want) {
				t.Errorf("%s: passes at %v, want %v", name, got[name], want)
			}
		}
	})
}

// While an agenda fails, all loops run at their own intervals.
func TestAgenda_Fails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := passes(t, map[string]time.Duration{"one": time.Second, "another": 4 * time.Second}, func(*Agenda[string], time.Duration) ([]string, error) {
			return nil, errors.New("no Postgres")
		})
		if len(got["one"]) < 10 || len(got["another"]) != 4 {
			t.Errorf("passes at %v", got)
		}
	})
}

// An agenda that expects work polls at its interval.
func TestAgenda_Expects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := passes(t, nil, func(a *Agenda[string], at time.Duration) ([]string, error) {
			if at == 2*time.Second {
				time.AfterFunc(100*time.Millisecond, a.Expect)
			}
			return nil, nil
		})["agenda"]
		if want := 2250 * time.Millisecond; !slices.Contains(got, want) || len(got) > 20 {
			t.Errorf("polled at %v", got)
		}
	})
}
