package devstack

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestChromium_Found: the variable first, then PATH, then the usual folders.
func TestChromium_Found(t *testing.T) {
	paths, path := bareMachine(t)
	usual, inPath, named := filepath.Join(path, "usual", "Chromium"), filepath.Join(path, "chromium"), filepath.Join(path, "named")
	paths.chromium = []string{usual}
	t.Setenv("CHROMIUM", "")
	for _, program := range []string{usual, inPath, named} {
		script(t, program, "exit 0")
		if program == named {
			t.Setenv("CHROMIUM", named)
		}
		if got, err := Chromium(t.Context(), Config{searchPaths: paths, noInstall: true}); err != nil || got != program {
			t.Errorf("found %s, want %s; %v", got, program, err)
		}
	}
}

// TestChromium_Missing checks that the error explains how to install a missing Chromium.
func TestChromium_Missing(t *testing.T) {
	paths, path := bareMachine(t)
	t.Setenv("CHROMIUM", "")
	for _, manager := range []string{"apt-get", "brew"} {
		script(t, filepath.Join(path, manager), "echo the mirror is away; exit 100")
	}
	_, err := Chromium(t.Context(), Config{searchPaths: paths})
	if err == nil {
		t.Fatal("found a Chromium")
	}
	for _, part := range []string{"no Chromium", "CHROMIUM is not set", "no chromium in PATH", "the mirror is away", "apt-get install chromium-headless-shell"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not mention %q: %v", part, err)
		}
	}
}

func TestChromium_Installed(t *testing.T) {
	paths, path := bareMachine(t)
	t.Setenv("CHROMIUM", "")
	manager := map[bool]string{true: "apt-get", false: "brew"}[os.Geteuid() == 0]
	program := filepath.Join(path, "chromium")
	script(t, filepath.Join(path, manager), "test $1 = update || { echo '#!/bin/sh' > "+program+"; /bin/chmod +x "+program+"; }")
	if got, err := Chromium(t.Context(), Config{searchPaths: paths}); err != nil || got != program {
		t.Errorf("installed %s, %v", got, err)
	}
}
