// Command bench measures sendquota against two baselines, all in one run on
// one machine: the naive service that one would write first, and an asynq
// worker that does nothing. It starts Postgres and Redis of its own, durable
// ones, and runs every program under test as a process of its own, as in
// production; the load comes from this process. Everything stays on loopback.
//
//	go build -o bin/bench ./bench && bin/bench -out docs/benchmarks.md
//
// Absolute numbers depend on the machine; the ratios are what counts. The compared systems take turns, round by round,
// so that a slow moment of the machine affects all of them.
package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/sendquota/sendquota/internal/testenv"
)

func main() {
	run := bench
	if role := roleOf(os.Args); role != nil {
		run = role
	}
	testenv.Program("bench", run)
}

// roleOf returns the function that this program runs as a child of itself, or nil if it is not a child. The two
// services are among them to record profiles: they have no endpoint for that.
func roleOf(args []string) func(testenv.T) {
	if len(args) != 2 {
		return nil
	}
	return map[string]func(testenv.T){
		"role-naive-api":    runNaiveService,
		"role-naive-worker": runNaiveWorker,
		"role-noop-worker":  runNoopWorker,
		"role-provider":     runProvider,
		"role-api":          runProfiledAPI,
		"role-worker":       runProfiledWorker,
	}[args[1]]
}

type options struct {
	out     string
	only    []string // measurements to make
	bin     string   // folder of the programs
	profile string   // folder for CPU profiles; empty: none are made
	short   bool
	rows    int // pushes of the large system; 0: sizes are not compared
	rounds  int
	round   time.Duration
	backlog int // pushes that are delivered at once
}

func readOptions() (options, error) {
	var o options
	flag.StringVar(&o.out, "out", "", "write the report into this `file`, too")
	flag.StringVar(&o.bin, "bin", "", "`folder` with api, worker and sendquota; without it, they are built")
	flag.StringVar(&o.profile, "profile", "", "keep CPU profiles of api and worker in this `folder`; costs a few percent")
	flag.BoolVar(&o.short, "short", false, "short rounds, for a first look")
	flag.IntVar(&o.rounds, "rounds", 0, "rounds of each comparison; 3, or 1 if short")
	flag.IntVar(&o.rows, "rows", 0, "compare a system with this number of pushes with one of 10,000, and measure nothing else; -out then names a page with a part for the results")
	var names []string
	for _, m := range measurements() {
		names = append(names, m.name)
	}
	var err error
	o.only, err = testenv.ParseFlags(names)
	if err == nil && o.rows != 0 && o.rows < fewRows {
		err = fmt.Errorf("-rows %d: it must be at least %d", o.rows, fewRows)
	}
	rounds := 3
	o.round, o.backlog = 5*time.Second, 20_000
	if o.short {
		rounds, o.round, o.backlog = 1, 2*time.Second, 5_000
	}
	o.rounds = cmp.Or(o.rounds, rounds)
	return o, err
}

// bench measures and reports. It fails if something could not be measured or
// was not exact; being slow is no failure.
func bench(t testenv.T) {
	o, err := readOptions()
	testenv.Check(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 25*time.Minute+time.Duration(o.rows)*200*time.Microsecond)
	defer cancel()
	var r *report
	testenv.Check(t, testenv.Run(ctx, func(t testenv.T) { r = measure(t, o) }))
	var text bytes.Buffer
	testenv.Check(t, r.write(&text))
	fmt.Print(text.String())
	if o.out != "" {
		testenv.Check(t, o.writePage(text.Bytes()))
	}
	testenv.Check(t, r.inexact())
}

// writePage writes the report into a page of its own, or, if sizes were compared, into its part of a page.
func (o options) writePage(text []byte) error {
	if o.rows > 0 {
		page, err := os.ReadFile(o.out)
		if err != nil {
			return err
		}
		if text, err = insertInto(page, text); err != nil {
			return fmt.Errorf("%s: %w", o.out, err)
		}
	}
	return os.WriteFile(o.out, text, 0o644)
}

// insertInto replaces the part of a page that the report of sizes fills.
func insertInto(page, text []byte) ([]byte, error) {
	before, rest, found := bytes.Cut(page, []byte("<!-- measured: `make scale` -->\n"))
	_, after, ends := bytes.Cut(rest, []byte("<!-- /measured -->\n"))
	if !found || !ends {
		return nil, errors.New("the page has no part between <!-- measured: `make scale` --> and <!-- /measured -->")
	}
	return slices.Concat(before, []byte("<!-- measured: `make scale` -->\n"), text, []byte("<!-- /measured -->\n"), after), nil
}
