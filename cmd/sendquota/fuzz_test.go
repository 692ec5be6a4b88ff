package main

import (
	"testing"
	"time"

	"github.com/alecthomas/kong"
)

// FuzzSince: --since is parsed as RFC 3339, or rejected.
func FuzzSince(f *testing.F) {
	for _, seed := range []string{"2026-12-01T09:00:00Z", "2026-12-01T09:00:00.5+01:00", "yesterday", "", "-1h", "2026-12-01", "0000-01-01T00:00:00Z"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var c auditCommand
		parser, err := kong.New(&c, kong.Exit(func(int) {}))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := parser.Parse([]string{"--since=" + text}); err != nil {
			if !c.Since.IsZero() {
				t.Errorf("%q was refused, but read as %s", text, c.Since)
			}
			return
		}
		if want, err := time.Parse(time.RFC3339, text); err != nil || !c.Since.Equal(want) {
			t.Errorf("%q is %s, want %s (%v)", text, c.Since, want, err)
		}
	})
}
