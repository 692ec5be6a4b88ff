package loop

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// Passes come with the ticks. A full one is followed by the next at once, and a failed one
// is logged and waits.
func TestLoop_Passes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var (
			text   bytes.Buffer
			passes []time.Duration
			began  = time.Now()
		)
		ctx, stop := context.WithCancel(t.Context())
		results := []struct {
			full bool
			err  error
		}{{}, {full: true}, {full: true}, {}, {full: true, err: errors.New("trouble")}, {}}
		err := Loop{Name: "work", Interval: time.Second, Log: slog.New(slog.NewTextHandler(&text, nil)), Pass: func(context.Context) (bool, error) {
			passes = append(passes, time.Since(began))
			r := results[len(passes)-1]
			if len(passes) == len(results) {
				stop()
			}
			return r.full, r.err
		}}.Run(ctx)
		const s = time.Second
		if want := []time.Duration{0, s, s, s, 2 * s, 3 * s}; err != nil || !slices.Equal(passes, want) {
			t.Errorf("passes at %v, want %v; %v", passes, want, err)
		}
		if got := text.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "work failed") || !strings.Contains(got, "trouble") {
			t.Errorf("logged %q", got)
		}
	})
}

// A pass that fails because its context ended is no failure.
func TestLoop_EndsQuietly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		err := Loop{Name: "work", Interval: time.Second, Log: slog.New(slog.NewTextHandler(&text, nil)), Pass: func(ctx context.Context) (bool, error) {
			<-ctx.Done()
			return true, ctx.Err()
		}}.Run(ctx)
		if err != nil || text.Len() > 0 {
			t.Errorf("%v; logged %q", err, text.String())
		}
	})
}

// A loop begins after its delay, follows a failed pass after Retry whatever wakes it, and otherwise
// comes before the tick when it is woken.
func TestLoop_DelayRetryAndWake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var passes []time.Duration
		began, wake := time.Now(), make(chan struct{}, 1)
		ctx, stop := context.WithCancel(t.Context())
		err := Loop{
			Name: "work", Interval: time.Hour, Log: slog.New(slog.DiscardHandler), Delay: time.Minute, Retry: time.Second, Wake: wake,
			Pass: func(context.Context) (bool, error) {
				passes = append(passes, time.Since(began))
				switch len(passes) {
				case 1:
					wake <- struct{}{}
					return false, errors.New("trouble")
				case 3:
					stop()
				}
				return false, nil
			},
		}.Run(ctx)
		if want := []time.Duration{time.Minute, time.Minute + time.Second, time.Minute + time.Second}; err != nil || !slices.Equal(passes, want) {
			t.Errorf("passes at %v, want %v; %v", passes, want, err)
		}
	})
}

// A loop whose context ends during its delay makes no pass.
func TestLoop_StopsDuringDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		if err := (Loop{Interval: time.Second, Delay: time.Hour}).Run(ctx); err != nil {
			t.Error(err)
		}
	})
}
