package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// clockVariable sets the clock of a program built with skew, in seconds from
// the true time.
const clockVariable = "CHAOS_CLOCK"

// build returns the folder of the programs, with the points of the package
// failpoint in them.
func (l *lab) build(ctx context.Context) (string, error) {
	say("building api, worker and sendquota")
	bin := filepath.Join(l.dir, "bin")
	args := []string{"build", "-tags", "failpoint", "-o", bin + "/"}
	if l.skew {
		overlay, err := skewedClock(ctx, l.dir)
		if err != nil {
			return "", err
		}
		args = append(args, "-overlay", overlay)
	}
	const module = "github.com/sendquota/sendquota/cmd/"
	out, err := exec.CommandContext(ctx, "go", append(args, module+"api", module+"worker", module+"sendquota")...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, out)
	}
	return bin, nil
}

// skewedClock writes an overlay for the compiler, in which time.Now is off by as
// many seconds as the environment says. Go reads the clock past the C library
// and time namespaces know no such clock, so this is the one way to give a whole
// program, its libraries included, another time. Timers are not touched.
func skewedClock(ctx context.Context, dir string) (string, error) {
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOROOT: %w", err)
	}
	folder := filepath.Join(strings.TrimSpace(string(root)), "src", "time")
	source, err := os.ReadFile(filepath.Join(folder, "time.go"))
	if err != nil {
		return "", err
	}
	const reading = "	sec, nsec, mono := runtimeNow()\n	if mono == 0 {"
	if strings.Count(string(source), reading) != 1 {
		return "", fmt.Errorf("time.Now of this version of Go reads the clock in another way: adapt %s, or use -skew=false", "chaos/build.go")
	}
	patched := strings.Replace(string(source), reading, strings.Replace(reading, "\n", "\n	sec += skew\n", 1), 1)
	const skew = "package time\n\nimport \"syscall\"\n\nvar skew = func() int64 {\n	s, _ := syscall.Getenv(\"" + clockVariable + "\")\n	n, _ := atoi(s)\n	return int64(n)\n}()\n"
	replace := map[string]string{}
	for name, text := range map[string]string{"time.go": patched, "skew.go": skew} {
		replace[filepath.Join(folder, name)] = filepath.Join(dir, name)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return "", err
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, overlay, 0o600)
}
