// Command chaos proves the guarantees under faults. It builds the programs with
// the points of the package failpoint in them, starts Postgres, Redis and a
// provider of its own, breaks them in every way that a real operation meets, and
// compares what callers were told, what Postgres holds and what the provider
// got.
//
//	make chaos                 everything, about five minutes
//	make chaos DURATION=10m    a longer storm
//	make chaos SEED=42         the choices of an earlier run again
//
// It has four parts. The sweep kills or freezes a process at every named point.
// The mutants are programs that lack a gate, and must be caught. The backlog is what an
// outage of the workers leaves behind. The storm breaks everything in turn
// under load. Everything stays on loopback. It exits with 1 if a guarantee was
// broken, or if a fault that belongs to the run was never met.
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9/logging"

	"github.com/sendquota/sendquota/internal/testenv"
)

func main() {
	testenv.ServeProvider(newSimulator().choose)
	if err := chaos(); err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1)
	}
}

// part is one way to look for broken guarantees.
type part struct {
	name string
	run  func(t testenv.T, l *lab)
}

var parts = []part{{"sweep", sweep}, {"mutants", mutants}, {"backlog", backlog}, {"storm", storm}}

// scarce is how short a storm may be and still be expected to meet everything.
const scarce = time.Minute

type options struct {
	duration time.Duration
	seed     uint64
	hits     int
	backlog  int
	skew     bool
	only     []string
	keep     string
}

func readOptions() (options, error) {
	var (
		o    options
		only string
	)
	names := make([]string, len(parts))
	for i, p := range parts {
		names[i] = p.name
	}
	flag.DurationVar(&o.duration, "duration", time.Minute, "how long the storm lasts")
	flag.Uint64Var(&o.seed, "seed", 0, "of all choices; 0: another one in every run")
	flag.IntVar(&o.hits, "hits", 3, "the sweep kills at the first to this arrival at every point")
	flag.IntVar(&o.backlog, "backlog", 50_000, "pushes that are due when the workers come back")
	flag.BoolVar(&o.skew, "skew", true, "give workers clocks that are minutes apart; costs a build of everything, the standard library included")
	flag.StringVar(&only, "only", "", "run only these, with commas: "+strings.Join(names, ","))
	flag.StringVar(&o.keep, "keep", filepath.Join(".local", "chaos"), "`folder` for the history, the provider's journal and the logs of a run that failed")
	flag.Parse()
	if flag.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", flag.Arg(0))
	}
	if only != "" {
		o.only = strings.Split(only, ",")
	}
	for _, name := range o.only {
		if !slices.Contains(names, name) {
			return o, fmt.Errorf("-only %s: there are %s", name, strings.Join(names, ", "))
		}
	}
	if o.duration < time.Second || o.hits < 1 || o.backlog < 100 {
		return o, fmt.Errorf("-duration must be at least 1s, -hits at least 1, -backlog at least 100")
	}
	if o.seed == 0 {
		o.seed = rand.Uint64N(1_000_000)
	}
	return o, nil
}

// chaos runs the parts and reports.
func chaos() error {
	o, err := readOptions()
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	logging.Disable() // Redis is away most of the time
	say("seed %d; the same choices again: bin/chaos %s -seed %d", o.seed, strings.Join(os.Args[1:], " "), o.seed)
	return testenv.Run(ctx, func(t testenv.T) {
		l := openLab(t, o)
		for _, p := range parts {
			if len(o.only) == 0 || slices.Contains(o.only, p.name) {
				l.run(t, p)
			}
		}
		l.report.write(os.Stdout)
		testenv.Check(t, l.report.failure())
	})
}

// run runs a part. What it started ends with it.
func (l *lab) run(t testenv.T, p part) {
	began := time.Now()
	say("%s …", p.name)
	err := testenv.Run(t.Context(), func(t testenv.T) { p.run(t, l) })
	l.report.took(p.name, time.Since(began))
	if t.Context().Err() != nil {
		t.Fatal("interrupted")
	}
	if err != nil {
		l.report.violate("%s could not be brought to its end: %v", p.name, err)
	}
}

// say tells the reader at the terminal what goes on.
func say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, time.Now().Format("15:04:05 ")+format+"\n", args...)
}
