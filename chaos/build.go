package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/sendquota/sendquota/internal/testenv"
)

// clockVariable sets the clock of a program built with skew, in seconds from
// the true time.
const clockVariable = "CHAOS_CLOCK"

// build builds the programs, and returns their folder.
func (l *lab) build(ctx context.Context) (string, error) {
	o := overlay{}
	if l.skew {
		if err := o.skewClock(ctx); err != nil {
			return "", err
		}
	}
	return l.compile(ctx, "whole", o, "api", "worker", "sendquota")
}

// compile builds commands with failpoints and an overlay, and returns their folder, which gets the name.
func (l *lab) compile(ctx context.Context, name string, o overlay, commands ...string) (string, error) {
	testenv.Say("building %s: %s", name, strings.Join(commands, ", "))
	bin := filepath.Join(l.dir, "bin", name)
	list, err := o.write(filepath.Join(bin, "overlay"))
	if err != nil {
		return "", err
	}
	return bin, testenv.Build(ctx, bin, []string{"-tags", "failpoint", "-overlay", list}, commands...)
}

// skewClock makes time.Now wrong by the number of seconds in the environment. Go reads the clock past the C library,
// and time namespaces do not cover that clock, so this is the only way to give a whole program, with its libraries,
// another time. Timers are not affected.
func (o overlay) skewClock(ctx context.Context) error {
	root, err := goEnv(ctx, "GOROOT")
	if err != nil {
		return err
	}
	folder := filepath.Join(root, "src", "time")
	const reading = "	sec, nsec, mono := runtimeNow()\n	if mono == 0 {"
	if err := o.replace(filepath.Join(folder, "time.go"), reading, strings.Replace(reading, "\n", "\n	sec += skew\n", 1)); err != nil {
		return fmt.Errorf("time.Now of this version of Go reads the clock in another way: adapt chaos/build.go, or use -skew=false: %w", err)
	}
	o[filepath.Join(folder, "skew.go")] = "package time\n\nimport \"syscall\"\n\nvar skew = func() int64 {\n	s, _ := syscall.Getenv(\"" + clockVariable + "\")\n	n, _ := atoi(s)\n	return int64(n)\n}()\n"
	return nil
}
