package lists

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// wildTexts are texts that a guard can take for something else: all of up to four signs, and some long ones.
func wildTexts() (all []string) {
	signs := []string{"'", "=", "-", " ", "a", "\u00a0", ";", `"`}
	all = []string{""}
	for from := 0; len(all) < 1+8+64+512+4096; from++ {
		for _, sign := range signs {
			all = append(all, all[from]+sign)
		}
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var text strings.Builder
		for range 5 + rnd.IntN(20) {
			text.WriteString(signs[rnd.IntN(len(signs))])
		}
		all = append(all, text.String())
	}
	return all
}

// TestGuarded_RoundTrip: whatever a text is, what is read of its guarded cell is the text, and no guarded cell begins as a formula.
func TestGuarded_RoundTrip(t *testing.T) {
	for _, text := range wildTexts() {
		cell := guarded(text)
		if got := unguarded(cell); got != text {
			t.Fatalf("%q is written as %q, and read as %q", text, cell, got)
		}
		if cell != "" && strings.ContainsAny(cell[:1], "=+-@\t\r\n ") {
			t.Fatalf("%q is written as %q", text, cell)
		}
	}
	for cell, want := range map[string]string{"'+45": "+45", " '+45 ": "+45", "''+45": "'+45", "'tHooft": "'tHooft", "' ": "'", "''": "''", "'": "'", " a ": "a", "x'": "x'"} {
		if got := unguarded(cell); got != want {
			t.Errorf("%q is read as %q, want %q", cell, got, want)
		}
	}
}
