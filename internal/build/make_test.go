package build

import (
	"debug/buildinfo"
	"debug/elf"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

// TestMake_Build: `make build` builds each program static, without paths of this machine and without symbols, and sets its version.
func TestMake_Build(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if out, err := exec.Command("make", "-C", "../..", "build", "BIN="+dir, "VERSION=v9.9.9", "REVISION=0123abc").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range []string{"api", "worker", "sendquota"} {
		path := filepath.Join(dir, name)
		info, err := buildinfo.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		settings := map[string]string{}
		for _, s := range info.Settings {
			settings[s.Key] = s.Value
		}
		if settings["CGO_ENABLED"] != "0" || settings["-trimpath"] != "true" {
			t.Errorf("%s is built with %v", name, settings)
		}
		if out, err := exec.Command(path, "--version").Output(); err != nil || string(out) != name+" v9.9.9 (revision 0123abc, "+runtime.Version()+")\n" {
			t.Errorf("%s --version: %q, %v", name, out, err)
		}
		if runtime.GOOS == "linux" {
			checkStatic(t, path)
		}
	}
}

// checkStatic reports a program that needs a dynamic loader, or that has symbols.
func checkStatic(t *testing.T, path string) {
	t.Helper()
	file, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, p := range file.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			t.Errorf("%s has %v", path, p.Type)
		}
	}
	for _, name := range []string{".symtab", ".debug_info", ".zdebug_info"} {
		if file.Section(name) != nil {
			t.Errorf("%s has the section %s", path, name)
		}
	}
}
