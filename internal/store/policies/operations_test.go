package policies_test

import (
	"os"
	"strings"
	"testing"
)

// TestOperations_Statements runs the statements of docs/operations.md, so that none of them fails for an operator in
// trouble.
func TestOperations_Statements(t *testing.T) {
	t.Parallel()
	b := setup(t)
	text, err := os.ReadFile("../../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, block := range strings.Split(string(text), "```sql\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		for statement := range strings.SplitSeq(strings.TrimSpace(block), ";\n") {
			if _, err := b.DB.Exec(t.Context(), statement); err != nil {
				t.Errorf("%s\n%v", statement, err)
			}
			ran++
		}
	}
	if ran < 7 {
		t.Errorf("%d statements", ran)
	}
}
