package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestMutants_Sources applies the mutations of every mutant to the sources, and, if it has the time, compiles all that they change at
// once.
func TestMutants_Sources(t *testing.T) {
	var all []mutation
	for _, m := range allMutants {
		if _, err := mutated(t.Context(), m.mutations); err != nil {
			t.Errorf("the mutant %s (%s) no longer fits: %v", m.name, m.breaks, err)
		}
		for _, one := range m.mutations {
			if !slices.Contains(all, one) {
				all = append(all, one)
			}
		}
	}
	o, err := mutated(t.Context(), all)
	if err != nil {
		t.Fatal(err)
	}
	if testing.Short() { // to compile what most packages import takes minutes
		return
	}
	list, err := o.write(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"build", "-tags", "failpoint", "-overlay", list}
	for path := range o {
		args = append(args, filepath.Dir(path))
	}
	if out, err := exec.CommandContext(t.Context(), "go", args...).CombinedOutput(); err != nil {
		t.Errorf("the mutants do not compile: %v\n%s", err, out)
	}
}

// TestOverlay_Replace: a text that a file does not contain exactly once is an error that names both.
func TestOverlay_Replace(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a.go")
	if err := os.WriteFile(file, []byte("once twice twice"), 0o600); err != nil {
		t.Fatal(err)
	}
	o := overlay{}
	for _, text := range []string{"never", "twice"} {
		if err := o.replace(file, text, "x"); err == nil || !strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), text) {
			t.Errorf("replacing %q: %v", text, err)
		}
	}
	for _, text := range []string{"once ", "2nd "} { // the second mutation sees the first
		if err := o.replace(file, text, "2nd 3rd "); err != nil {
			t.Error(err)
		}
	}
	if o[file] != "2nd 3rd 3rd twice twice" {
		t.Errorf("got %q", o[file])
	}
}

// TestOverlay_SkewClock compiles the package time of this version of Go with the skewed clock.
func TestOverlay_SkewClock(t *testing.T) {
	o := overlay{}
	if err := o.skewClock(t.Context()); err != nil {
		t.Fatal(err)
	}
	list, err := o.write(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-overlay", list, "time").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
