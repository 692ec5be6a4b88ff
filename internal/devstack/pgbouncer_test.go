package devstack

import (
	"strings"
	"testing"
)

// TestStartPgBouncer_Missing checks that the error explains how to install a missing PgBouncer.
func TestStartPgBouncer_Missing(t *testing.T) {
	paths, _ := bareMachine(t)
	t.Setenv("PGBOUNCER", "")
	_, err := StartPgBouncer(t.Context(), Config{searchPaths: paths, noInstall: true}, "postgres://postgres@127.0.0.1:5432/x", 4)
	if err == nil {
		t.Fatal("started without a PgBouncer")
	}
	for _, part := range []string{"no PgBouncer", "PGBOUNCER is not set", "no pgbouncer in PATH", "apt-get install pgbouncer"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not mention %q: %v", part, err)
		}
	}
}
