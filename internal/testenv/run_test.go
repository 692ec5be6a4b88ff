package testenv

import (
	"context"
	"errors"
	"os"
	"slices"
	"testing"
)

func TestRun_Fatal(t *testing.T) {
	t.Parallel()
	first := errors.New("first")
	var steps []string
	var dir string
	err := Run(t.Context(), func(r T) {
		r.Cleanup(func() { steps = append(steps, "last") })
		r.Cleanup(func() {
			if r.Context().Err() == nil {
				t.Error("the context lives in a cleanup")
			}
			r.Cleanup(func() { steps = append(steps, "added") })
			r.Fatal("in a cleanup")
		})
		dir = r.TempDir()
		r.Errorf("wrapped: %w", first)
		Check(r, errors.New("second"))
		steps = append(steps, "after Fatal")
	})
	if want := []string{"added", "last"}; !slices.Equal(steps, want) {
		t.Errorf("steps %q, want %q", steps, want)
	}
	if !errors.Is(err, first) || err.Error() != "wrapped: first\nsecond\nin a cleanup" {
		t.Errorf("errors %v", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is left: %v", err)
	}
}

func TestUntil_ContextEnds(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	err := Run(ctx, func(r T) {
		Until(r, 1, "never", func() bool { cancel(); return false })
	})
	if err == nil || err.Error() != context.Canceled.Error() {
		t.Errorf("error %v", err)
	}
	if err := Run(t.Context(), func(T) {}); err != nil {
		t.Errorf("without an error: %v", err)
	}
}

func TestQuantile(t *testing.T) {
	for q, want := range map[float64]float64{0: 1, 0.5: 3, 0.99: 4, 1: 5} {
		if got := Quantile([]float64{5, 4, 3, 2, 1}, q); got != want {
			t.Errorf("quantile %v is %v, should be %v", q, got, want)
		}
	}
	if got := Quantile[float64](nil, 0.5); got != 0 {
		t.Errorf("of no values it is %v", got)
	}
}
