package main

import (
	"strings"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/store"
)

// TestProgress_Terminal, and for audits that have become long: then
// also of what was done before.
func TestProgress_Terminal(t *testing.T) {
	for name, row := range map[string]struct {
		watched bool
		began   time.Time
		want    [2]string // after one step, and after the second
	}{
		"watched":             {true, time.Now(), [2]string{"checked a, b in 2s\n", "checked a, b in 2s\nchecked c in 3ms\n"}},
		"unwatched":           {false, time.Now(), [2]string{"", ""}},
		"unwatched, and long": {false, time.Now().Add(-time.Minute), [2]string{"checked a, b in 2s\n", "checked a, b in 2s\nchecked c in 3ms\n"}},
	} {
		var out strings.Builder
		p := &progress{to: &out, watched: row.watched, began: row.began}
		for i, s := range []store.AuditStep{{Checks: []string{"a", "b"}, Took: 2 * time.Second}, {Checks: []string{"c"}, Took: 3 * time.Millisecond}} {
			if p.done(s); out.String() != row.want[i] {
				t.Errorf("%s: step %d has told %q", name, i, out.String())
			}
		}
	}
	var out strings.Builder
	p := &progress{to: &out, began: time.Now()}
	p.done(store.AuditStep{Checks: []string{"early"}})
	p.began = time.Now().Add(-time.Minute)
	p.done(store.AuditStep{Checks: []string{"late"}})
	if out.String() != "checked early in 0s\nchecked late in 0s\n" {
		t.Errorf("what was withheld: %q", out.String())
	}
}
