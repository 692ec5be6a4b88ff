package bulkhead

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestComputing_BesideNeighbours: a tenant with much to compute uses one processor, half of the time, while another
// tenant asks. Alone, it continues at once.
func TestComputing_BesideNeighbours(t *testing.T) {
	const work = 30 * time.Millisecond
	for _, row := range []struct {
		name      string
		computing *Computing[string]
		takes     time.Duration // for four pieces of work, which two processors could do
	}{
		{"beside another tenant", &Computing[string]{New[string](4, 2), &Neighbours[string]{}}, 7 * work},
		{"alone", &Computing[string]{New[string](4, 2), nil}, 2 * work},
		{"without turns", nil, work},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if row.computing != nil {
					row.computing.neighbours.Seen("loud")
					row.computing.neighbours.Seen("calm")
				}
				began := time.Now() // on the clock of the bubble
				var all sync.WaitGroup
				for range 4 {
					all.Go(func() {
						if err := row.computing.Do(t.Context(), "loud", func() error { time.Sleep(work); return nil }); err != nil {
							t.Error(err)
						}
					})
				}
				all.Wait()
				if takes := time.Since(began); takes != row.takes {
					t.Errorf("it took %s, not %s", takes, row.takes)
				}
			})
		})
	}
}

// TestComputing_Seen: a tenant that computes counts as active, even if its request came long ago: beside another one,
// it computes half of the time.
func TestComputing_Seen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const work = 30 * time.Millisecond
		c := &Computing[string]{New[string](4, 2), &Neighbours[string]{}}
		began := time.Now() // on the clock of the bubble
		for range 20 {
			c.neighbours.Seen("calm")
			if err := c.Do(t.Context(), "loud", func() error { time.Sleep(work); return nil }); err != nil {
				t.Error(err)
			}
		}
		if took := time.Since(began); took != 39*work {
			t.Errorf("it took %s, not %s", took, 39*work)
		}
	})
}

// TestComputing_GivesUp: a caller that waits too long for a permit computes nothing.
func TestComputing_GivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Computing[string]{New[string](2, 1), nil}
		ends := make(chan struct{})
		defer close(ends)
		go func() { _ = c.Do(t.Context(), "loud", func() error { <-ends; return nil }) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := c.Do(ctx, "loud", func() error { t.Error("it has computed"); return nil })
		if full, ok := errors.AsType[*FullError](err); !ok || !full.Own {
			t.Error(err)
		}
	})
}
