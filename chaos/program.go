package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sendquota/sendquota/internal/process"
	"github.com/sendquota/sendquota/internal/testenv"
)

// program is an api or a worker that is started again when it dies, as a
// service manager would.
type program struct {
	process.Command
	logs string // prefix of the log files

	mu     sync.Mutex
	faults []string // what happens to the first process, the second, …; the others come to no harm
	away   bool     // not to be started again
	began  time.Time
	all    []*process.Process // the last one runs
	done   chan struct{}      // closed when nothing is supervised any more
}

// startProgram starts and supervises a program.
func (b *bundle) startProgram(kind string, faults []string, env ...string) *program {
	path := filepath.Join(b.Programs, kind)
	if filepath.Base(b.mutant) == kind {
		path = b.mutant
	}
	p := &program{
		Command: process.Command{Name: kind, Path: path, Env: slices.Concat(b.Env, b.env, env)},
		logs:    filepath.Join(b.Dir, fmt.Sprintf("%s-%d", kind, len(b.programs)+1)), faults: faults, done: make(chan struct{}),
	}
	testenv.Check(b, p.start())
	go p.supervise()
	b.programs = append(b.programs, p)
	return p
}

func (p *program) start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.Command
	n := len(p.all)
	c.Log = fmt.Sprintf("%s.%d.log", p.logs, n+1)
	if n < len(p.faults) {
		c.Env = append(slices.Clip(c.Env), "FAILPOINT="+p.faults[n])
	}
	next, err := process.Start(c)
	if err != nil {
		return err
	}
	p.began, p.all = time.Now(), append(p.all, next)
	return nil
}

func (p *program) supervise() {
	defer close(p.done)
	for {
		<-p.process().Exited()
		p.mu.Lock()
		away := p.away
		p.mu.Unlock()
		if away {
			return
		}
		time.Sleep(20 * time.Millisecond) // as service managers do: a program that fails at once must not use up the machine
		if err := p.start(); err != nil {
			testenv.Say("%s cannot be started again: %v", p.Name, err)
			return
		}
	}
}

func (p *program) process() *process.Process {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all[len(p.all)-1]
}

// stop ends the program permanently, cleanly.
func (p *program) stop() error {
	p.mu.Lock()
	p.away = true
	current := p.all[len(p.all)-1]
	p.mu.Unlock()
	err := current.Stop(20 * time.Second)
	<-p.done
	return err
}

// said counts how often the program has written a text, in all its lives.
func (p *program) said(text string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, one := range p.all {
		n += strings.Count(one.Log(), text)
	}
	return n
}
