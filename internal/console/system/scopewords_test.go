package system

import (
	"testing"

	"github.com/sendquota/sendquota/internal/push"
)

// TestScopeWords: each scope has words.
func TestScopeWords(t *testing.T) {
	t.Parallel()
	for _, scope := range push.Scopes {
		if scopeWords[scope] == "" {
			t.Errorf("the scope %s has no words", scope)
		}
	}
}
