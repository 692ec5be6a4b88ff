package faults_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sendquota/sendquota/internal/faults"
)

// TestEveryPointIsSomewhereInTheCode, once, and is listed.
func TestEveryPointIsSomewhereInTheCode(t *testing.T) {
	declared := map[string]string{}
	text, err := os.ReadFile("point.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^\t(\w+) +Point = "([a-z.]+)"`).FindAllStringSubmatch(string(text), -1) {
		declared[m[1]] = m[2]
	}
	if len(declared) != len(faults.Points) {
		t.Errorf("%d points are declared, %d are listed", len(declared), len(faults.Points))
	}
	files, err := filepath.Glob("../*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	here := map[string]int{}
	for _, f := range files {
		if strings.HasSuffix(f, "_test.go") {
			continue
		}
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`faults\.Here\(faults\.(\w+)\)`).FindAllStringSubmatch(string(text), -1) {
			here[m[1]]++
		}
	}
	for name, point := range declared {
		if here[name] != 1 || !slices.Contains(faults.Points, faults.Point(point)) {
			t.Errorf("%s is at %d places in the code; it is listed: %v", name, here[name], slices.Contains(faults.Points, faults.Point(point)))
		}
	}
}

// TestNothingCanBeSwitchedOffHere: this is an ordinary program.
func TestNothingCanBeSwitchedOffHere(t *testing.T) {
	t.Setenv("FAULTS_OFF", string(faults.Judge))
	t.Setenv("FAULTS", "kill@"+string(faults.BookCommitted)+":1")
	faults.Here(faults.BookCommitted)
	if faults.Off(faults.Judge) {
		t.Error("a gate is off")
	}
}
