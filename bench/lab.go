package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/sendquota/sendquota/internal/process"
)

// measurement fills one or more rows of the report.
type measurement struct {
	name    string
	program string // whose profile tells where the time goes; empty: none's
	run     func(ctx context.Context, l *lab) error
}

func measurements() []measurement {
	return []measurement{
		{"submit", "api", measureSubmit},
		{"batch", "api", measureBatch},
		{"refuse", "api", measureRefusals},
		{"deliver", "worker", measureDelivery},
		{"samesecond", "worker", measureSameSecond},
		{"memory", "", measureMemory},
		{"limits", "", measureLimits},
		{"neighbours", "", measureNeighbours},
	}
}

func names(ms []measurement) []string {
	var all []string
	for _, m := range ms {
		all = append(all, m.name)
	}
	return all
}

// lab is where measurements are made: the servers, the programs, and the
// processes that run now.
type lab struct {
	options
	report   *report
	servers  *servers
	dir      string // temporary
	self     string // path of this program
	programs string // folder with api, worker and sendquota
	running  []*process.Process
	started  int           // processes so far
	profiles string        // folder for CPU profiles; empty: none are made
	index    int           // of Redis, for the next sendquota
	patience time.Duration // left for waiting until strangers are quiet

	recipients *atomic.Int64 // numbers of recipients so far
}

// measure makes all measurements that are asked for.
func measure(ctx context.Context, o options) (r *report, err error) {
	l := &lab{options: o, profiles: o.profile, index: oursIndex, patience: time.Minute, recipients: new(atomic.Int64)}
	defer func() { err = errors.Join(err, l.close()) }()
	if err := l.open(ctx); err != nil {
		return nil, err
	}
	for _, m := range measurements() {
		if len(o.only) > 0 && !slices.Contains(o.only, m.name) {
			continue
		}
		if err := l.make(ctx, m); err != nil {
			return nil, err
		}
	}
	return l.report, nil
}

// make makes one measurement. If it falls short, the same is run again for the
// profiles, which tell where the time goes.
func (l *lab) make(ctx context.Context, m measurement) error {
	l.report.measuring = m.name
	if err := l.run(ctx, m); err != nil {
		return err
	}
	if m.program == "" || !l.report.fellShort(m.name) {
		return nil
	}
	if l.profiles != "" {
		return l.explain(ctx, m)
	}
	say("%s falls short: once more, for the profiles", m.name)
	again := *l
	again.report = &report{measuring: m.name}
	again.rounds = 1
	again.profiles = filepath.Join(l.dir, "profiles")
	err := again.run(ctx, m)
	l.started, l.running, l.patience = again.started, again.running, again.patience
	if err != nil {
		return err
	}
	again.report = l.report
	return again.explain(ctx, m)
}

// explain reports where the time of a measurement goes, from its profiles.
func (l *lab) explain(ctx context.Context, m measurement) error {
	top, err := l.top(ctx, m)
	l.report.profiles = append(l.report.profiles, profile{measurement: m.name, program: m.program, top: top})
	return err
}

func (l *lab) run(ctx context.Context, m measurement) error {
	say("%s …", m.name)
	err := m.run(ctx, l)
	if err = errors.Join(err, l.stopAll()); err != nil {
		return fmt.Errorf("%s: %w", m.name, err)
	}
	return nil
}

func (l *lab) open(ctx context.Context) error {
	var err error
	if l.self, err = os.Executable(); err != nil {
		return err
	}
	if l.dir, err = os.MkdirTemp("", "sendquota-bench-"); err != nil {
		return err
	}
	if l.programs, err = l.build(ctx); err != nil {
		return err
	}
	if l.servers, err = startServers(ctx); err != nil {
		return err
	}
	l.report, err = newReport(ctx, l)
	return err
}

// build returns the folder of the programs, which it makes if need be.
func (l *lab) build(ctx context.Context) (string, error) {
	if l.bin != "" {
		return filepath.Abs(l.bin)
	}
	say("building api, worker and sendquota")
	bin := filepath.Join(l.dir, "bin")
	const module = "github.com/sendquota/sendquota/cmd/"
	out, err := exec.CommandContext(ctx, "go", "build", "-o", bin+"/", module+"api", module+"worker", module+"sendquota").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, out)
	}
	return bin, nil
}

// close ends everything that was started.
func (l *lab) close() error {
	err := l.stopAll()
	if l.servers != nil {
		err = errors.Join(err, l.servers.close())
	}
	return errors.Join(err, os.RemoveAll(l.dir))
}
