package schedule

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

// TestEvery: passes come with the ticks; one that found more than it could
// handle is followed by the next at once, and a failed one is told of and waits.
func TestEvery(t *testing.T) {
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
		err := every(ctx, time.Second, slog.New(slog.NewTextHandler(&text, nil)), "work", func(context.Context) (bool, error) {
			passes = append(passes, time.Since(began))
			r := results[len(passes)-1]
			if len(passes) == len(results) {
				stop()
			}
			return r.full, r.err
		})
		const s = time.Second
		if want := []time.Duration{0, s, s, s, 2 * s, 3 * s}; err != nil || !slices.Equal(passes, want) {
			t.Errorf("passes at %v, want %v; %v", passes, want, err)
		}
		if got := text.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "work failed") || !strings.Contains(got, "trouble") {
			t.Errorf("logged %q", got)
		}
	})
}

// TestEveryEndsQuietly: a pass that fails because it is told to stop is no
// failure.
func TestEveryEndsQuietly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		err := every(ctx, time.Second, slog.New(slog.NewTextHandler(&text, nil)), "work", func(ctx context.Context) (bool, error) {
			<-ctx.Done()
			return true, ctx.Err()
		})
		if err != nil || text.Len() > 0 {
			t.Errorf("%v; logged %q", err, text.String())
		}
	})
}
