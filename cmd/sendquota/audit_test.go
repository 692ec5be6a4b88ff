package main

import (
	"strings"
	"testing"
	"time"
)

// TestProgress_Terminal: on a terminal, and in a long audit, each tenth is printed once.
func TestProgress_Terminal(t *testing.T) {
	for name, row := range map[string]struct {
		watched bool
		ago     time.Duration // of the beginning
		want    string
	}{
		"watched":             {true, 0, "checked 20 % in 0 seconds\nchecked 30 % in 0 seconds\nchecked 100 % in 0 seconds\n"},
		"unwatched":           {false, 0, ""},
		"unwatched, and long": {false, time.Minute, "checked 20 % in 1 minute\nchecked 30 % in 1 minute\nchecked 100 % in 1 minute\n"},
	} {
		var out strings.Builder
		p := &progress{to: &out, watched: row.watched, began: time.Now().Add(-row.ago)}
		for _, share := range []float64{0.01, 0.22, 0.29, 0.31, 1} {
			p.done(share)
		}
		if out.String() != row.want {
			t.Errorf("%s: it has told %q", name, out.String())
		}
	}
}
