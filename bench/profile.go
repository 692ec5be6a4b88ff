package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/pprof"
	"strings"

	"github.com/sendquota/sendquota/internal/app"
	"github.com/sendquota/sendquota/internal/testenv"
)

// profileVariable names the file for a child's CPU profile.
const profileVariable = "BENCH_PROFILE"

func runProfiledAPI(t testenv.T)    { runProfiled(t, (*app.App).RunAPI) }
func runProfiledWorker(t testenv.T) { runProfiled(t, (*app.App).RunWorker) }

// runProfiled is bin/api or bin/worker, but for the profile.
func runProfiled(t testenv.T, run func(*app.App, context.Context) error) {
	f, err := os.Create(os.Getenv(profileVariable))
	testenv.Check(t, err)
	testenv.Check(t, pprof.StartCPUProfile(f))
	err = app.Service(run)
	pprof.StopCPUProfile()
	testenv.Check(t, errors.Join(err, f.Close()))
}

// profilePath names a new file for a profile of the running measurement.
func (l *lab) profilePath(kind string) string {
	l.check(os.MkdirAll(l.profile, 0o755))
	f, err := os.CreateTemp(l.profile, l.report.measuring+"-"+kind+"-*.prof")
	l.check(err)
	l.check(f.Close())
	return f.Name()
}

// top returns the most expensive functions of a measurement's program from its profiles, each with its callees, limited
// to functions that a reader can change.
func (l *lab) top(m measurement) string {
	files, err := filepath.Glob(filepath.Join(l.profile, m.name+"-"+m.program+"-*.prof"))
	if err != nil || len(files) == 0 {
		l.Fatalf("no profile of the %s during %s: %v", m.program, m.name, err)
	}
	const shown = `sendquota|pgx|redis|asynq|encoding/json|net/http|^runtime\.(gcBgMarkWorker|mallocgc|findRunnable|netpoll)$|^syscall\.|^internal/poll`
	args := append([]string{"tool", "pprof", "-top", "-cum", "-nodecount=60", "-show=" + shown, l.self}, files...)
	out, err := exec.CommandContext(l.Context(), "go", args...).Output()
	if err != nil {
		l.Fatalf("go tool pprof: %v", err)
	}
	// The names of generic functions are longer than the line.
	text := regexp.MustCompile(`\[go\.shape.*\]`).ReplaceAllString(string(out), "[…]")
	return strings.TrimSpace(strings.ReplaceAll(text, "github.com/sendquota/sendquota/internal/", ""))
}
