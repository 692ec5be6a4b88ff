package pg

import (
	"strings"
	"testing"
)

// TestFacts_Version checks that a Postgres before 15 is too old, and that settings that a server does not report cause
// no complaint.
func TestFacts_Version(t *testing.T) {
	t.Parallel()
	for f, want := range map[facts]string{
		{Version: "14.9", Number: 140009, Locks: 64}:                    "has the version 14.9",
		{Version: "15.0", Number: 150000}:                               "",
		{Version: "18beta1", Number: 180000, Locks: 256}:                "",
		{Version: "17.2", Number: 170002, Locks: 255, Connections: 100}: "max_locks_per_transaction = 255",
		{Version: "17.2", Number: 170002, Locks: 256, Connections: 48}:  "",
	} {
		switch err := f.check(24); {
		case want == "" && err != nil, want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%+v: %v, want %q", f, err, want)
		}
	}
}
