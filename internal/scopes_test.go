package internal_test

import (
	"os"
	"strings"
	"testing"

	"github.com/sendquota/sendquota/internal/push"
)

// TestDocs_Scopes: the README lists every scope of a key.
func TestDocs_Scopes(t *testing.T) {
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, found := strings.Cut(string(text), "The scopes of a key are ")
	list, _, ended := strings.Cut(list, ". Write scopes")
	if !found || !ended {
		t.Fatal("the README does not list the scopes")
	}
	for _, scope := range push.Scopes {
		if !strings.Contains(list, "`"+scope+"`") {
			t.Errorf("the README lacks the scope %s", scope)
		}
	}
}
