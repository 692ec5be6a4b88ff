package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"
)

// report collects the events and the findings of a run.
type report struct {
	options
	mu        sync.Mutex
	met       map[string]int // faults and events by kind
	order     []string       // of the kinds, as they were first named
	missing   []string       // what should have happened and did not
	broken    []string       // violations of guarantees
	numbers   []string       // measured
	durations []string
	pushes    int
	attempts  int
}

func newReport(o options) *report { return &report{options: o, met: map[string]int{}} }

// meet counts a fault or an event.
func (r *report) meet(kind string, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Contains(r.order, kind) {
		r.order = append(r.order, kind)
	}
	r.met[kind] += n
}

// sometimes notes an event that the run must have met at least once.
func (r *report) sometimes(kind string, n int) {
	r.meet(kind, n)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.met[kind] == 0 {
		r.missing = append(r.missing, kind)
	}
}

// record adds what the checks found in a bundle.
func (r *report) record(name string, j *findings) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pushes += len(j.facts.rows)
	for _, sends := range j.facts.sends {
		r.attempts += len(sends)
	}
	for _, b := range j.found {
		r.broken = append(r.broken, name+": "+b)
	}
}

func (r *report) violate(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.broken = append(r.broken, fmt.Sprintf(format, args...))
}

func (r *report) measured(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.numbers = append(r.numbers, fmt.Sprintf(format, args...))
}

func (r *report) took(part string, d time.Duration) {
	r.durations = append(r.durations, fmt.Sprintf("%s %s", part, d.Round(time.Second)))
}

// write prints the summary.
func (r *report) write(w io.Writer) {
	fmt.Fprintf(w, "\n%-60s %10s\n", "met", "times")
	for _, kind := range r.order {
		fmt.Fprintf(w, "%-60s %10d\n", kind, r.met[kind])
	}
	fmt.Fprintf(w, "%-60s %10d\n%-60s %10d\n%-60s %10d\n\n", "pushes", r.pushes, "attempts", r.attempts, "VIOLATIONS", len(r.broken))
	for _, n := range r.numbers {
		fmt.Fprintln(w, n)
	}
	fmt.Fprintf(w, "seed %d; %v\n", r.seed, r.durations)
	const most = 40
	for i, b := range r.broken {
		if i == most {
			fmt.Fprintf(w, "… and %d more\n", len(r.broken)-most)
			break
		}
		fmt.Fprintln(w, "VIOLATION", b)
	}
	for _, m := range r.missing {
		fmt.Fprintf(w, "NEVER MET: %s; the run proves less than it should\n", m)
	}
}

// failure is an error if a guarantee was broken, or something was not tested.
func (r *report) failure() error {
	switch {
	case len(r.broken) > 0:
		return fmt.Errorf("%d violations", len(r.broken))
	case len(r.missing) > 0:
		return errors.New("no violation, but not everything was met that should have been")
	}
	return nil
}
