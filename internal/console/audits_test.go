package console

import (
	"testing"
)

func TestAudits(t *testing.T) {
	t.Parallel()
	b := setupAlone(t)
	b.get("/console/proof").has(t, 200, "No audit yet", `id="I1"`, "overdue", "It waits.", "Covered by tests")
}
