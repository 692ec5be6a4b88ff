package failpoint_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sendquota/sendquota/internal/failpoint"
)

// TestPoints_EachHitOnce: every declared point is listed, and hit at one place of the code.
func TestPoints_EachHitOnce(t *testing.T) {
	declared := map[string]string{}
	text, err := os.ReadFile("point.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^\t(\w+) +Point = "([a-z.]+)"`).FindAllStringSubmatch(string(text), -1) {
		declared[m[1]] = m[2]
	}
	if len(declared) != len(failpoint.Points) {
		t.Errorf("%d points are declared, %d are listed", len(declared), len(failpoint.Points))
	}
	files, err := filepath.Glob("../*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	deeper, err := filepath.Glob("../*/*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, deeper...)
	hits := map[string]int{}
	for _, f := range files {
		if strings.HasSuffix(f, "_test.go") {
			continue
		}
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`failpoint\.Hit\(failpoint\.(\w+)\)`).FindAllStringSubmatch(string(text), -1) {
			hits[m[1]]++
		}
	}
	for name, point := range declared {
		if hits[name] != 1 || !slices.Contains(failpoint.Points, failpoint.Point(point)) {
			t.Errorf("%s is at %d places in the code; it is listed: %v", name, hits[name], slices.Contains(failpoint.Points, failpoint.Point(point)))
		}
	}
}

// TestHit_NothingInNormalBuild runs itself again with a fault in the environment, which would kill it.
func TestHit_NothingInNormalBuild(t *testing.T) {
	if os.Getenv("FAILPOINT") != "" {
		failpoint.Hit(failpoint.BookCommitted)
		return
	}
	again := exec.Command(os.Args[0], "-test.run=^TestHit_NothingInNormalBuild$")
	again.Env = append(os.Environ(), "FAILPOINT=kill@"+string(failpoint.BookCommitted)+":1")
	if out, err := again.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
