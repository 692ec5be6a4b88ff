package telemetry

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"
)

// TestWriter_KeepsLinesWhole writes from many goroutines and wants every line whole, and the lines of each goroutine in
// order.
func TestWriter_KeepsLinesWhole(t *testing.T) {
	const writers, lines = 8, 500
	var out bytes.Buffer
	w := NewWriter(&out)
	var wg sync.WaitGroup
	for g := range writers {
		wg.Go(func() {
			for i := range lines {
				fmt.Fprintf(w, "writer %d line %d\n", g, i)
			}
		})
	}
	wg.Wait()
	w.Close()
	next := map[int]int{}
	for line := range strings.Lines(out.String()) {
		var g, i int
		if _, err := fmt.Sscanf(line, "writer %d line %d\n", &g, &i); err != nil || i != next[g] {
			t.Fatalf("line %q (%v), want line %d of its writer", line, err, next[g])
		}
		next[g]++
	}
	for g := range writers {
		if next[g] != lines {
			t.Errorf("writer %d: %d lines, want %d", g, next[g], lines)
		}
	}
}

// TestWriter_Waits wants a writer that falls behind to slow its callers down,
// and not to grow for ever.
func TestWriter_Waits(t *testing.T) {
	gate := make(chan struct{})
	w := NewWriter(gated{gate})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 4 {
			_, _ = w.Write(make([]byte, maxWaiting))
		}
	}()
	for n := 0; ; n++ {
		select {
		case gate <- struct{}{}:
		case <-done:
			close(gate)
			w.Close()
			if n == 0 {
				t.Error("four full buffers were taken without a single write")
			}
			return
		}
	}
}

type gated struct{ gate chan struct{} }

func (g gated) Write(p []byte) (int, error) {
	<-g.gate
	return len(p), nil
}
