package build

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestNotices: the output has a license for each library of the image's program, and for the files that its pages load.
func TestNotices(t *testing.T) {
	out, err := exec.Command("sh", "notices.sh").Output()
	if err != nil {
		t.Fatal(err)
	}
	var title string
	text := map[string]int{} // bytes by title
	for line := range strings.Lines(string(out)) {
		if name, ok := strings.CutPrefix(line, "# "); ok {
			title, _, _ = strings.Cut(strings.TrimSpace(name), " ")
			continue
		}
		text[title] += len(line)
	}
	for _, name := range []string{"github.com/redis/go-redis/v9", "github.com/go-chi/chi/v5", "golang.org/x/crypto", "htmx", "uPlot", "scalar", "Go"} {
		if text[name] < 500 {
			t.Errorf("%s: %d bytes of a license", name, text[name])
		}
	}
	if names := strings.Fields(string(out)); slices.Contains(names, "github.com/alicebob/miniredis/v2") {
		t.Error("the image does not have miniredis")
	}
}
