package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sendquota/sendquota/internal/devstack"
	"github.com/sendquota/sendquota/internal/testenv"
)

// errNoVersion: there is no version to upgrade from.
var errNoVersion = errors.New("git knows no commit before the last migration")

// upgrade replaces the programs of the version before by these, one after another and under load, goes back, and comes again
// for good.
func upgrade(t testenv.T, l *lab) {
	before, err := l.buildBefore(t.Context())
	if errors.Is(err, errNoVersion) && l.before == "" {
		l.report.measured("upgrade: not tried, %v; -before names one", err)
		return
	}
	testenv.Check(t, err)
	database, err := url.Parse(testenv.OwnPostgres(t).URL)
	testenv.Check(t, err)
	testenv.Check(t, devstack.Exec(t.Context(), database.String(), `CREATE DATABASE upgraded`)) // the other one has this version's schema
	database.Path = "/upgraded"
	b := l.setup(t, config{
		name: "upgrade", version: before, database: database.String(), redis: testenv.OwnRedis(t).URL, rules: []rule{{1, 2 * time.Second}, {4, 20 * time.Second}},
		lease: stormLease, armLease: 3 * time.Second, ttl: 5 * time.Minute, apis: 2, behaviour: "badly",
	})
	if o := b.Exec("sendquota", "migrate", "--contract"); o.Status != 0 && !strings.Contains(o.Err, "unknown flag") {
		t.Fatalf("the version before can not contract its schema: %s%s", o.Out, o.Err)
	}
	var programs []*program
	for n := range b.addrs {
		programs = append(programs, b.startAPI(n))
	}
	for range 2 {
		programs = append(programs, b.startWorker(nil))
	}
	ctx, end := context.WithCancel(t.Context())
	defer end()
	var load sync.WaitGroup
	load.Go(func() { b.load(ctx, l.seed) })

	phases := []struct {
		name    string
		migrate []string
		to      string // the folder of the programs that replace the others; empty: none does
	}{
		{"the version before", nil, ""},
		{"the version before, in the expanded schema", []string{"migrate"}, ""},
		{"this version", nil, l.programs},
		{"the version before again", nil, before},
		{"this version again", nil, l.programs},
		{"this version, in the contracted schema", []string{"migrate", "--contract"}, ""},
	}
	part := max(l.duration/time.Duration(2*len(phases)), 5*time.Second) // pushes are booked up to six seconds ahead
	began := make([]time.Time, len(phases))
	for i, p := range phases {
		testenv.Say("upgrade: %s", p.name)
		if p.migrate != nil {
			b.Programs = l.programs
			b.Tool(p.migrate...)
		}
		if p.to != "" {
			b.Programs = p.to
			for n, old := range programs {
				programs[n] = b.replace(old, n)
				if n+1 < len(programs) {
					l.report.sometimes("programs of two versions side by side", b.alive(before, l.programs))
				}
				testenv.Check(t, pass(ctx, part/time.Duration(len(programs))))
			}
		}
		began[i] = time.Now()
		testenv.Check(t, pass(ctx, part))
		if i == 0 && b.said(`"msg":"the database is newer than this program`) > 0 {
			t.Fatal("the version before has not begun with a schema of its own")
		}
	}
	end()
	load.Wait()
	b.settle(time.Now().Add(time.Hour), 90*time.Second)
	j := b.check()
	l.report.record("upgrade", j)
	met := l.report.meet
	if l.duration >= scarce {
		met = l.report.sometimes
	}
	for i, p := range phases {
		until := time.Now()
		if i+1 < len(phases) {
			until = began[i+1]
		}
		met("pushes sent by "+p.name, j.facts.sentBetween(began[i], until))
	}
	if n := b.history.counted("500"); n > 0 {
		l.report.violate("upgrade: %d answers 500", n)
	}
}

// replace stops a program, and starts one of the present version in its place: the n-th API, or a worker.
func (b *bundle) replace(p *program, n int) *program {
	testenv.Check(b, p.stop())
	if n < len(b.addrs) {
		return b.startAPI(n)
	}
	return b.startWorker(nil)
}

// alive is 1 if a program of each of some versions runs, and 0 otherwise.
func (b *bundle) alive(versions ...string) int {
	return count(!slices.ContainsFunc(versions, func(version string) bool {
		return !slices.ContainsFunc(b.programs, func(p *program) bool { return filepath.Dir(p.Path) == version && p.process().Alive() })
	}))
}

// sentBetween counts the attempts that began between two times and were delivered.
func (f *facts) sentBetween(from, until time.Time) (n int) {
	for _, sends := range f.sends {
		n += number(sends, func(s send) bool { return s.Outcome == "delivered" && s.Started.After(from) && s.Started.Before(until) })
	}
	return n
}

// buildBefore builds the programs of the version before, and returns their folder.
func (l *lab) buildBefore(ctx context.Context) (string, error) {
	git := func(args ...string) (string, error) {
		out, err := exec.CommandContext(ctx, "git", args...).CombinedOutput()
		if err != nil {
			return "", fmt.Errorf("git %s: %w\n%s", strings.Join(args, " "), err, out)
		}
		return strings.TrimSpace(string(out)), nil
	}
	last, err := git("log", "-1", "--format=%H", "--diff-filter=A", "--", "migrations/*.sql")
	if err == nil || l.before != "" {
		last, err = git("rev-parse", "--verify", "--short", cmp.Or(l.before, last+"^")+"^{commit}")
	}
	if err != nil {
		return "", fmt.Errorf("%w: %w", errNoVersion, err)
	}
	testenv.Say("building the version before, %s", last)
	source, bin := filepath.Join(l.dir, "before"), filepath.Join(l.dir, "bin", "before")
	if err := os.MkdirAll(source, 0o700); err != nil {
		return "", err
	}
	if _, err := git("archive", "--format=tar", "-o", source+".tar", last); err != nil {
		return "", err
	}
	if out, err := exec.CommandContext(ctx, "tar", "-xf", source+".tar", "-C", source).CombinedOutput(); err != nil {
		return "", fmt.Errorf("tar: %w\n%s", err, out)
	}
	build := exec.CommandContext(ctx, "go", "build", "-o", bin+"/", "./cmd/api", "./cmd/worker", "./cmd/sendquota")
	build.Dir = source
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", last, err, out)
	}
	return bin, nil
}
