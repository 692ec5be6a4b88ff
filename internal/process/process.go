// Package process runs programs as children of this one: servers for development and tests, and the programs of e2e
// tests, benchmarks and chaos. On Linux a child always ends with this process.
package process

import (
	"context"
	"errors"
	"fmt"
	"io"
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

// readyTimeout bounds how long a child may take to get ready, or to be frozen. Both take well under a second unless the
// machine is overloaded.
const readyTimeout = 2 * time.Minute

// Command is a program to run as a child, and the signals that end it.
type Command struct {
	Name string // for messages; empty: the path
	Path string
	Args []string
	Env  []string // besides the few variables that every program needs
	Dir  string   // working folder; empty: the own
	Log  string   // path of the log that the output is appended to

	Stdin string
	User  *syscall.Credential // nil: the own user
	Lock  *os.File            // inherited, so that a lock on it lives as long as the child; or nil

	End    syscall.Signal // asks for an orderly end; 0: SIGTERM
	Orphan syscall.Signal // sent by the kernel when this process dies, on Linux; 0: SIGKILL
}

// Process is a running Command, or one that has ended.
type Process struct {
	Command
	process *os.Process
	logFrom int64 // where the output of this run begins
	exited  chan struct{}
	err     error // how it ended; read after exited
}

// Start starts a command.
func Start(c Command) (*Process, error) {
	if c.Name == "" {
		c.Name = c.Path
	}
	if c.End == 0 {
		c.End = syscall.SIGTERM
	}
	if c.Orphan == 0 {
		c.Orphan = syscall.SIGKILL
	}
	log, err := os.OpenFile(c.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p := &Process{Command: c, exited: make(chan struct{})}
	if p.logFrom, err = log.Seek(0, io.SeekEnd); err != nil {
		return nil, err
	}
	cmd := exec.Command(c.Path, c.Args...)
	cmd.Dir, cmd.Env = c.Dir, append(Environment(), c.Env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(c.Stdin), log, log
	cmd.SysProcAttr = attributes(c.User, c.Orphan)
	if c.Lock != nil {
		cmd.ExtraFiles = []*os.File{c.Lock}
	}
	if err := p.start(cmd); err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Name, err)
	}
	return p, nil
}

// start starts the command on a thread that lives as long as the child: the
// kernel sends the orphan signal when the thread ends, not when the process does.
func (p *Process) start(cmd *exec.Cmd) error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the child
		err := cmd.Start()
		p.process = cmd.Process
		started <- err
		if err == nil {
			p.err = cmd.Wait()
			close(p.exited)
		}
	}()
	return <-started
}

// Environment returns the environment of every child. It contains nothing that changes how a program behaves, such as a
// locale or a PG* variable of the caller.
func Environment() (env []string) {
	for _, name := range []string{"PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "TMPDIR"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// Pid is the process id.
func (p *Process) Pid() int { return p.process.Pid }

// Exited is closed when the process is gone.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Err returns the error that the process ended with, once it is gone.
func (p *Process) Err() error { return p.err }

// Alive reports whether the process runs, or is frozen.
func (p *Process) Alive() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// Log returns the complete output of the process until now.
func (p *Process) Log() string {
	text, err := os.ReadFile(p.Command.Log)
	if err != nil {
		return err.Error()
	}
	return string(text[min(p.logFrom, int64(len(text))):])
}

// LogTail returns the end of the process' output.
func (p *Process) LogTail() string {
	text := strings.TrimSpace(p.Log())
	return text[max(0, len(text)-2000):]
}

// AwaitReady asks probe until it returns no error, for two minutes at most. It fails
// at once, with the process's last output, when that ends.
func (p *Process) AwaitReady(ctx context.Context, probe func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	for {
		err := probe(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.exited:
			return fmt.Errorf("%s died while starting (%v); it said:\n%s", p.Name, p.err, p.LogTail())
		case <-ctx.Done():
			return fmt.Errorf("%s does not answer: %w; it said:\n%s", p.Name, errors.Join(ctx.Err(), err), p.LogTail())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// AwaitListen waits until the process accepts connections on a TCP address.
func (p *Process) AwaitListen(ctx context.Context, addr string) error {
	return p.AwaitReady(ctx, func(ctx context.Context) error {
		conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", addr)
		if err != nil {
			return err
		}
		return conn.Close()
	})
}

// The ports of FreeAddr lie below those that systems give to outgoing
// connections. Within these, a client that keeps trying to reach a stopped server
// would in the end connect to itself, and hold the port.
const lowestPort, ports = 15000, 17768

var (
	firstPort = rand.Int64N(ports)
	portsUsed atomic.Int64
)

// FreeAddr returns a loopback address without a listener, and another one each time. Another process may take it before
// it is used.
func FreeAddr() (string, error) {
	var err error
	for range 1000 {
		addr := fmt.Sprint("127.0.0.1:", lowestPort+(firstPort+portsUsed.Add(1))%ports)
		listener, listenErr := net.Listen("tcp4", addr)
		if listenErr == nil {
			return addr, listener.Close()
		}
		err = listenErr
	}
	return "", fmt.Errorf("find a free port: %w", err)
}
