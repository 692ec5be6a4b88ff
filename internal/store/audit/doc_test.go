package audit_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/sendquota/sendquota/internal/store/audit"

	"github.com/google/go-cmp/cmp"

	"github.com/sendquota/sendquota/internal/store"
)

// TestChecks_InOperations checks that docs/operations.md lists all checks of the audit with their meanings, and
// docs/guarantees.md the guarantees that they prove.
func TestChecks_InOperations(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(text), "| check | what it finds | breaks |\n|---|---|---|\n")
	if !found {
		t.Fatal("docs/operations.md has no table of checks")
	}
	var listed []audit.Check
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(line, "| \n"), " | ")
		if len(cells) != 3 {
			break
		}
		listed = append(listed, audit.Check{Name: strings.Trim(cells[0], "`"), Meaning: cells[1], Guarantee: cells[2]})
	}
	if diff := cmp.Diff(audit.Checks, listed); diff != "" {
		t.Errorf("docs/operations.md lists other checks than store.Checks (-want +got):\n%s", diff)
	}
	guarantees, err := os.ReadFile("../../../docs/guarantees.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range audit.Checks {
		if !strings.Contains(string(guarantees), "| **"+c.Guarantee+"** |") {
			t.Errorf("docs/guarantees.md has no %s, which %s names", c.Guarantee, c.Name)
		}
	}
	_, exceptions, _ := strings.Cut(string(text), "with these exceptions:\n") // operators read this, and users of the console do not
	for _, c := range audit.Checks {
		if c.Name == "overdue" && (!strings.Contains(c.Meaning, "channel takes nothing") || !strings.Contains(exceptions, "channel takes nothing")) {
			t.Errorf("it is not said that a push is overdue while its channel takes nothing: %s", c.Meaning)
		}
	}
	names := (&store.Store{}).CheckNames()
	slices.Sort(names)
	if len(slices.Compact(names)) != len(audit.Checks) {
		t.Error("two checks have one name")
	}
}
