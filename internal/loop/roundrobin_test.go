package loop

import (
	"context"
	"errors"
	"slices"
	"testing"
)

// TestRoundRobin: an owner with much work gets a step for each step of another one.
func TestRoundRobin(t *testing.T) {
	t.Parallel()
	work := []string{"a1", "a2", "a3", "b1", "b2"}
	broken := errors.New("broken")
	var fails error
	turns := RoundRobin[byte, string]{
		Take: func(_ context.Context, except []byte) (*string, error) {
			i := slices.IndexFunc(work, func(w string) bool { return !slices.Contains(except, w[0]) })
			if fails != nil || i < 0 {
				return nil, fails
			}
			w := work[i]
			work = slices.Delete(work, i, i+1)
			return &w, nil
		},
		Owner: func(w *string) byte { return (*w)[0] },
	}
	var got []string
	for {
		w, err := turns.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if w == nil {
			break
		}
		got = append(got, *w)
	}
	if want := []string{"a1", "b1", "a2", "b2", "a3"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	fails = broken
	if _, err := turns.Next(t.Context()); err != broken {
		t.Error(err)
	}
}
