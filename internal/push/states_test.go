package push

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestDocs_Arrows holds docs/states.md to the state machine.
func TestDocs_Arrows(t *testing.T) {
	page, err := os.ReadFile("../../docs/states.md")
	if err != nil {
		t.Fatal(err)
	}
	want := "| from | to | when |\n|---|---|---|\n"
	for _, a := range Arrows {
		want += fmt.Sprintf("| %s | %s | %s |\n", a.From, a.To, a.When)
	}
	if !strings.Contains(string(page), want+"\n") {
		t.Errorf("docs/states.md does not have exactly this table:\n%s", want)
	}
}
