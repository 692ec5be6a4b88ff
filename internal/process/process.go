// Package process runs programs as children of this one, for the benchmarks and
// the chaos run. Servers are started by devstack.
package process

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// Process is a child of this program.
type Process struct {
	Name string

	cmd    *exec.Cmd
	log    string
	exited chan struct{}
	err    error // how it ended; read after exited
}

// Start runs a program with exactly this environment, and PATH and TMPDIR. What
// it writes goes to the file log. On Linux it dies with this program, whatever
// happens.
func Start(log, name string, env []string, path string, args ...string) (*Process, error) {
	p := &Process{Name: name, cmd: exec.Command(path, args...), exited: make(chan struct{}), log: log}
	file, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	p.cmd.Stdout, p.cmd.Stderr = file, file
	p.cmd.Env = append(env[:len(env):len(env)], "PATH="+os.Getenv("PATH"), "TMPDIR="+os.TempDir())
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
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return p, nil
}

// Pid is the process id.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Exited is closed when the process is gone.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Err says how the process ended, once it is gone.
func (p *Process) Err() error { return p.err }

// Listens waits until the process answers on addr.
func (p *Process) Listens(ctx context.Context, addr string) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for {
		conn, err := net.DialTimeout("tcp", addr, time.Second)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-p.exited:
			return fmt.Errorf("%s ended at once: %w\n%s", p.Name, p.err, p.Said())
		case <-ctx.Done():
			return fmt.Errorf("%s does not listen on %s: %w\n%s", p.Name, addr, err, p.Said())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// Log is all that the process has written so far.
func (p *Process) Log() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// Said is the end of what the process wrote.
func (p *Process) Said() string {
	text := p.Log()
	return strings.TrimSpace(text[max(0, len(text)-2000):])
}

// Signal sends a signal. A process that is gone does not mind.
func (p *Process) Signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) }

// Kill ends the process with SIGKILL and waits until it is gone.
func (p *Process) Kill() {
	p.Signal(syscall.SIGKILL)
	<-p.exited
}

// Stop ends the process in good order, within so long; else it is killed, and
// that is an error.
func (p *Process) Stop(within time.Duration) error {
	p.Signal(syscall.SIGTERM)
	select {
	case <-p.exited:
		if p.err != nil {
			return fmt.Errorf("%s: %w\n%s", p.Name, p.err, p.Said())
		}
		return nil
	case <-time.After(within):
		p.Kill()
		return fmt.Errorf("%s did not stop within %s and was killed\n%s", p.Name, within, p.Said())
	}
}

// The ports of FreeAddr lie below those that Linux gives to whoever asks for
// any, so that no connection takes one before its program listens there.
const lowestPort, ports = 30000, 2768

var (
	firstPort = rand.Int64N(ports)
	portsUsed atomic.Int64
)

// FreeAddr returns a loopback address on which nobody listens now, and another
// one each time.
func FreeAddr() (string, error) {
	var err error
	for range ports {
		addr := fmt.Sprint("127.0.0.1:", lowestPort+(firstPort+portsUsed.Add(1))%ports)
		listener, listenErr := net.Listen("tcp", addr)
		if listenErr == nil {
			return addr, listener.Close()
		}
		err = listenErr
	}
	return "", fmt.Errorf("no free port: %w", err)
}
