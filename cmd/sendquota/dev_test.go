//go:build !nodev

package main

import (
	"strings"
	"testing"
)

// TestWelcome_Inbox: messages arrive in the terminal only where it takes the place of the channels that a file would have.
func TestWelcome_Inbox(t *testing.T) {
	t.Parallel()
	for _, inbox := range []bool{true, false} {
		var text strings.Builder
		welcome(&text, "127.0.0.1:8080", "key", "log", "push", true, inbox)
		if got := strings.Contains(text.String(), "watch the first one arrive here"); got != inbox || strings.Contains(text.String(), "%!") {
			t.Errorf("inbox %v: %s", inbox, text.String())
		}
	}
}
