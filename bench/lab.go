package main

import (
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sendquota/sendquota/internal/devstack"
	"github.com/sendquota/sendquota/internal/process"
	"github.com/sendquota/sendquota/internal/redisclient"
	"github.com/sendquota/sendquota/internal/testenv"
)

// measurement fills one or more rows of the report.
type measurement struct {
	name    string
	program string // the program whose profile shows where the time goes; empty: none
	run     func(l *lab)
}

func measurements() []measurement {
	return []measurement{
		{"submit", "api", measureSubmit},
		{"batch", "api", measureBatch},
		{"policy", "api", measurePolicy},
		{"campaign", "", measureCampaign},
		{"refuse", "api", measureRefusals},
		{"deliver", "worker", measureDelivery},
		{"samesecond", "worker", measureSameSecond},
		{"lateness", "worker", measureLateness},
		{"levels", "worker", measureLevels},
		{"limits", "", measureLimits},
	}
}

// lab holds the servers, the programs and the running processes of all measurements. Each system under test has a
// database and a Redis index of its own: asynq's keys have no prefix that could keep systems apart.
type lab struct {
	testenv.T // of the running measurement
	options
	report     *report
	servers    *testenv.Servers
	postgres   *pgx.Conn          // for statements outside of any system's database
	redis      redisclient.Client // for statements about the server as a whole
	dir        string             // temporary
	self       string             // path of this program
	running    []*process.Process
	sampler    int           // Postgres' process that answers what its other ones work on; 0: none
	settleTime time.Duration // left for waiting until strangers are quiet

	recipients atomic.Int64 // the last number of a recipient
}

// measure makes all requested measurements.
func measure(t testenv.T, o options) *report {
	l := &lab{T: t, options: o, settleTime: time.Minute, dir: t.TempDir()}
	l.open()
	if o.rows > 0 {
		l.make(measurement{"scale", "", measureScale})
		return l.report
	}
	for _, m := range measurements() {
		if slices.Contains(o.only, m.name) {
			l.make(m)
		}
	}
	return l.report
}

func (l *lab) open() {
	var err error
	l.self, err = os.Executable()
	l.check(err)
	if l.bin == "" {
		testenv.Say("building api, worker and sendquota")
		l.bin = filepath.Join(l.dir, "bin")
		l.check(testenv.Build(l.Context(), l.bin, nil))
	}
	l.bin, err = filepath.Abs(l.bin)
	l.check(err)
	l.servers = testenv.NewServers(devstack.Config{Durable: true, SharedBuffers: sharedBuffers(), OwnProcess: true, Progress: os.Stderr})
	testenv.Finally(l.T, l.servers.Close)
	l.postgres = testenv.Connect(l, l.servers.PostgresServer(l).URL)
	l.redis = testenv.RedisClient(l, l.servers.RedisServer(l).URL)
	l.report = newReport(l)
}

// make makes one measurement. If it falls short, it runs again to record profiles, which show where the time goes.
func (l *lab) make(m measurement) {
	l.report.measuring = m.name
	l.run(m)
	fellShort := slices.ContainsFunc(l.report.Short(), func(one row) bool { return one.measurement == m.name })
	if m.program == "" || !fellShort {
		return
	}
	if l.profile == "" {
		testenv.Say("%s falls short: once more, for the profiles", m.name)
		measured, rounds := l.report, l.rounds
		l.report, l.rounds, l.profile = &report{measuring: m.name}, 1, filepath.Join(l.dir, "profiles")
		l.run(m)
		l.report, l.rounds = measured, rounds
		defer func() { l.profile = "" }()
	}
	l.report.Profiles = append(l.report.Profiles, profile{Measurement: m.name, Program: m.program, How: "`go tool pprof -top -cum`", Top: l.top(m)})
}

// run makes a measurement. Everything that it starts ends with it.
func (l *lab) run(m measurement) {
	testenv.Say("%s …", m.name)
	all := l.T
	defer func() { l.T = all }()
	err := testenv.Run(all.Context(), func(t testenv.T) {
		l.T = t
		m.run(l)
	})
	if err != nil {
		all.Fatalf("%s: %w", m.name, err)
	}
}

// check ends the measurement on an error.
func (l *lab) check(err error) { testenv.Check(l.T, err) }

// startRole starts this program in one of its roles.
func (l *lab) startRole(name, role string, env ...string) *process.Process {
	log := filepath.Join(l.dir, role+".log")
	return l.watch(testenv.StartCommand(l.T, process.Command{Name: name, Path: l.self, Args: []string{role}, Env: env, Log: log}))
}

// watch counts the CPU time of a process under its name. The process must end in good order at the end of the
// measurement, unless it is stopped before.
func (l *lab) watch(p *process.Process) *process.Process {
	l.running = append(l.running, p)
	l.Cleanup(func() { l.stop(p) })
	return p
}

// stop ends a process in good order, once.
func (l *lab) stop(p *process.Process) {
	if i := slices.Index(l.running, p); i >= 0 {
		l.running = slices.Delete(l.running, i, i+1)
		l.check(p.Stop(20 * time.Second))
	}
}

// eventually waits until done returns true.
func (l *lab) eventually(fact string, done func() bool) {
	testenv.Until(l.T, 100*time.Millisecond, fact, done)
}
