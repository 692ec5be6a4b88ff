package activity

import (
	"os"
	"strings"
	"testing"
)

// TestGuarantees_AsDocument: the page promises what the document promises, word for word.
func TestGuarantees_AsDocument(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../docs/guarantees.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range guarantees {
		if !strings.Contains(string(text), "| **"+g.Name+"** | "+g.Promise+" |") {
			t.Errorf("docs/guarantees.md does not promise as %s: %s", g.Name, g.Promise)
		}
	}
	if n := strings.Count(string(text), "\n| **I"); n != len(guarantees) {
		t.Errorf("%d guarantees, %d in docs/guarantees.md", len(guarantees), n)
	}
}
