// Command chaos proves the guarantees under faults. It builds the programs with the failpoints enabled, starts
// Postgres, Redis and a provider of its own, and breaks them in every way that happens in real operation. Then it
// compares the answers to callers, the rows of Postgres and the requests to the provider.
//
//	make chaos                 everything, about seven minutes
//	make chaos DURATION=10m    a longer storm
//	make chaos SEED=42         the choices of an earlier run again
//
// It has five parts. The sweep kills or freezes a process at every failpoint. The mutants are programs without a gate,
// and must be caught. The backlog is the result of an outage of the workers. The storm breaks everything in turn under
// load; another one runs with a lane for each shard. All servers listen on loopback. It exits with 1 if a guarantee was
// broken, or if a fault that belongs to the run never happened.
package main

import (
	"cmp"
	"errors"
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9/logging"

	"github.com/sendquota/sendquota/internal/testenv"
)

func main() {
	testenv.ServeProvider(simulator{os.Getenv("BEHAVIOUR"), os.Getenv("SEED")}.choose)
	testenv.Program("chaos", chaos)
}

// part is one way to search for broken guarantees.
type part struct {
	name string
	run  func(t testenv.T, l *lab)
}

var parts = []part{{"sweep", sweep}, {"mutants", mutants}, {"backlog", backlog}, {"storm", storm("storm", fewLanes)}, {"shards", storm("shards", everyShard)}}

// scarce is the shortest storm that is expected to cover everything.
const scarce = time.Minute

type options struct {
	duration time.Duration
	seed     uint64
	hits     int
	sample   int
	backlog  int
	skew     bool
	only     []string
	keep     string
}

func readOptions() (options, error) {
	var o options
	names := make([]string, len(parts))
	for i, p := range parts {
		names[i] = p.name
	}
	flag.DurationVar(&o.duration, "duration", time.Minute, "how long the storm lasts")
	flag.Uint64Var(&o.seed, "seed", 0, "of all choices; 0: another one in every run")
	flag.IntVar(&o.hits, "hits", 3, "the sweep kills at the first to this arrival at every point")
	flag.IntVar(&o.sample, "sample", 1, "the sweep and the mutants draw one case in this number; 1: they run all")
	flag.IntVar(&o.backlog, "backlog", 50_000, "pushes that are due when the workers come back")
	flag.BoolVar(&o.skew, "skew", true, "give workers clocks that are minutes apart; costs a build of everything, the standard library included")
	flag.StringVar(&o.keep, "keep", filepath.Join(".local", "chaos"), "`folder` for the history, the provider's journal and the logs of a run that failed")
	var err error
	o.only, err = testenv.ParseFlags(names)
	if err == nil && (o.duration < time.Second || min(o.hits, o.sample) < 1 || o.backlog < 100) {
		err = errors.New("-duration must be at least 1s, -hits and -sample at least 1, -backlog at least 100")
	}
	o.seed = cmp.Or(o.seed, rand.Uint64N(1_000_000))
	return o, err
}

// chaos runs the parts and reports.
func chaos(t testenv.T) {
	o, err := readOptions()
	testenv.Check(t, err)
	logging.Disable() // Redis is away most of the time
	testenv.Say("seed %d; the same choices again: bin/chaos %s -seed %d", o.seed, strings.Join(os.Args[1:], " "), o.seed)
	l := openLab(t, o)
	for _, p := range parts {
		if slices.Contains(o.only, p.name) {
			l.run(t, p)
		}
	}
	l.report.write(os.Stdout)
	testenv.Check(t, l.report.failure())
}

// run runs a part. Everything that it starts ends with it.
func (l *lab) run(t testenv.T, p part) {
	began := time.Now()
	testenv.Say("%s …", p.name)
	err := testenv.Run(t.Context(), func(t testenv.T) { p.run(t, l) })
	l.report.took(p.name, time.Since(began))
	if t.Context().Err() != nil {
		t.Fatal("interrupted")
	}
	if err != nil {
		l.report.violate("%s could not be brought to its end: %v", p.name, err)
	}
}
