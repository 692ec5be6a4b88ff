package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/sendquota/sendquota/internal/process"
)

// program is an api or a worker that is started again when it dies, as a
// service manager would.
type program struct {
	kind string // api or worker
	path string
	env  []string
	logs string // prefix of the log files

	mu      sync.Mutex
	current *process.Process
	began   time.Time // of the current process
	faults  []string  // what happens to the first process, the second, …; the others come to no harm
	away    bool      // not to be started again
	starts  int
	all     []*process.Process
	done    chan struct{} // closed when nothing is supervised any more
}

// startProgram starts and supervises a program.
func (w *world) startProgram(kind string, faults []string, env ...string) (*program, error) {
	w.started++
	p := &program{
		kind: kind, path: filepath.Join(w.lab.programs, kind), env: append(w.env[:len(w.env):len(w.env)], env...), faults: faults,
		logs: filepath.Join(w.dir, fmt.Sprintf("%s-%d", kind, w.started)), done: make(chan struct{}),
	}
	if err := p.start(); err != nil {
		return nil, err
	}
	go p.supervise()
	w.programs = append(w.programs, p)
	return p, nil
}

func (p *program) start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.starts++
	env := p.env
	if p.starts <= len(p.faults) {
		env = append(env[:len(env):len(env)], "FAILPOINT="+p.faults[p.starts-1])
	}
	next, err := process.Start(fmt.Sprintf("%s.%d.log", p.logs, p.starts), p.kind, env, p.path)
	if err != nil {
		return err
	}
	p.current, p.began = next, time.Now()
	p.all = append(p.all, next)
	return nil
}

func (p *program) supervise() {
	defer close(p.done)
	for {
		<-p.process().Exited()
		if p.isAway() {
			return
		}
		time.Sleep(20 * time.Millisecond)
		if err := p.start(); err != nil {
			say("%s can not be started again: %v", p.kind, err)
			return
		}
	}
}

func (p *program) process() *process.Process {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.current
}

func (p *program) isAway() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.away
}

// kill ends the process at once; it is started again.
func (p *program) kill() { p.process().Signal(syscall.SIGKILL) }

// freeze stops the process for so long.
func (p *program) freeze(d time.Duration) {
	frozen := p.process()
	frozen.Signal(syscall.SIGSTOP)
	time.Sleep(d)
	frozen.Signal(syscall.SIGCONT)
}

// stop ends the program for good, cleanly.
func (p *program) stop() error {
	p.mu.Lock()
	p.away = true
	current := p.current
	p.mu.Unlock()
	current.Signal(syscall.SIGCONT)
	err := current.Stop(20 * time.Second)
	<-p.done
	return err
}

// restart ends the process cleanly; it is started again.
func (p *program) restart() { p.process().Signal(syscall.SIGTERM) }

// stopped reports whether the process has frozen itself.
func (p *program) stopped() bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.process().Pid()))
	if err != nil {
		return false
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(state, "T")
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
