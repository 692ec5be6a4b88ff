package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// process is a child of this program.
type process struct {
	kind   string // what the CPU time is booked on
	cmd    *exec.Cmd
	log    string
	exited chan struct{}
	err    error // how it ended; read after exited
}

// start runs a program. On Linux it dies with this one, whatever happens.
func (l *lab) start(kind string, env []string, path string, args ...string) (*process, error) {
	l.started++
	p := &process{
		kind: kind, cmd: exec.Command(path, args...), exited: make(chan struct{}),
		log: filepath.Join(l.dir, fmt.Sprintf("%d-%s.log", l.started, kind)),
	}
	log, err := os.Create(p.log)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.Env = append(env, "PATH="+os.Getenv("PATH"), "TMPDIR="+os.TempDir())
	p.cmd.SysProcAttr = childAttributes()
	started := make(chan error)
	go func() {
		// The kernel takes the end of the starting thread for our death.
		runtime.LockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			p.err = p.cmd.Wait()
			close(p.exited)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", kind, err)
	}
	l.running = append(l.running, p)
	return p, nil
}

// listens waits until the process answers on addr.
func (p *process) listens(ctx context.Context, addr string) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for {
		conn, err := net.DialTimeout("tcp", addr, time.Second)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-p.exited:
			return fmt.Errorf("%s ended at once: %w\n%s", p.kind, p.err, p.said())
		case <-ctx.Done():
			return fmt.Errorf("%s does not listen on %s: %w\n%s", p.kind, addr, err, p.said())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// said is the end of what the process wrote.
func (p *process) said() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(text[max(0, len(text)-2000):]))
}

// stop ends a process in good order.
func (l *lab) stop(p *process) error {
	l.running = slices.DeleteFunc(l.running, func(r *process) bool { return r == p })
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.exited:
		if p.err != nil {
			return fmt.Errorf("%s: %w\n%s", p.kind, p.err, p.said())
		}
		return nil
	case <-time.After(20 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.exited
		return fmt.Errorf("%s did not stop and was killed", p.kind)
	}
}

// stopAll ends all processes, the youngest first.
func (l *lab) stopAll() error {
	var err error
	for len(l.running) > 0 {
		err = errors.Join(err, l.stop(l.running[len(l.running)-1]))
	}
	return err
}

// freeAddr returns an address on which nobody listens now.
func freeAddr() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}
