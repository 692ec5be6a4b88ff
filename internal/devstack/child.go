package devstack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// patience bounds how long a server may take to start or to stop. Both take
// well under a second unless the machine is overloaded.
const patience = time.Minute

// command is what to run as a child process, and how to end it.
type command struct {
	path    string
	args    []string
	stdin   string
	dir     string   // working folder
	account *account // nil: the own user
	log     string   // file to which its output is appended
	lock    *os.File // inherited, so that the lock lives as long as the child

	end    syscall.Signal // asks for an orderly end
	orphan syscall.Signal // what the kernel sends when this process dies
}

// child is a running command.
type child struct {
	command
	process *os.Process
	logFrom int64         // where the output of this run begins
	exited  chan struct{} // closed when it is gone
	status  error         // how it ended; read after exited
}

// run starts the command. The goroutine that starts it keeps its thread until
// the child is gone, because the kernel sends the orphan signal when the
// starting thread ends, not when the process does.
func run(c command) (*child, error) {
	log, err := os.OpenFile(c.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	from, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(c.path, c.args...)
	cmd.Dir, cmd.Env = c.dir, childEnvironment()
	cmd.Stdin = strings.NewReader(c.stdin)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = processAttributes(c.account, c.orphan)
	if c.lock != nil {
		cmd.ExtraFiles = []*os.File{c.lock}
	}
	ch := &child{command: c, logFrom: from, exited: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the child
		err := cmd.Start()
		ch.process = cmd.Process
		started <- err
		if err != nil {
			return
		}
		ch.status = cmd.Wait()
		close(ch.exited)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", c.path, err)
	}
	return ch, nil
}

// childEnvironment is small and always the same: a server must not behave
// differently because of a locale or a PG* variable of the caller.
func childEnvironment() []string {
	env := []string{"LC_ALL=C", "TZ=UTC"}
	for _, name := range []string{"PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "TMPDIR"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// awaitReady asks probe until it is content. It fails at once when the child
// dies, with what the child last said.
func (ch *child) awaitReady(ctx context.Context, probe func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := probe(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ch.exited:
			return fmt.Errorf("%s died while starting (%v); it said:\n%s", ch.path, ch.status, ch.lastWords())
		case <-ctx.Done():
			return fmt.Errorf("%s does not answer: %w; it said:\n%s", ch.path, errors.Join(ctx.Err(), err), ch.lastWords())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// lastWords is the end of what the child wrote since it was started.
func (ch *child) lastWords() string {
	const most = 2000
	f, err := os.Open(ch.log)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	if _, err := f.Seek(ch.logFrom, io.SeekStart); err != nil {
		return err.Error()
	}
	text, err := io.ReadAll(f)
	if err != nil {
		return err.Error()
	}
	text = bytes.TrimSpace(text)
	return string(text[max(0, len(text)-most):])
}

func (ch *child) pid() int { return ch.process.Pid }

func (ch *child) hasExited() bool {
	select {
	case <-ch.exited:
		return true
	default:
		return false
	}
}

// signal sends to the child; a child that is gone already is no error.
func (ch *child) signal(s syscall.Signal) error {
	if err := ch.process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("send %s to process %d: %w", s, ch.pid(), err)
	}
	return nil
}

// stop ends the child in good order and waits for it. A child that does not
// obey is killed, which is an error.
func (ch *child) stop() error {
	if ch.hasExited() {
		return nil
	}
	// The kernel keeps the signal for a paused process until it is resumed.
	if err := errors.Join(ch.signal(ch.end), ch.resume()); err != nil {
		return err
	}
	select {
	case <-ch.exited:
		return nil
	case <-time.After(patience):
		return errors.Join(fmt.Errorf("process %d did not end within %s and was killed", ch.pid(), patience), ch.kill())
	}
}

// kill ends the child as a crash would. Its own children end by themselves,
// for which they must not be paused.
func (ch *child) kill() error {
	if err := ch.signalOffspring(syscall.SIGCONT); err != nil {
		return err
	}
	if err := ch.signal(syscall.SIGKILL); err != nil {
		return err
	}
	<-ch.exited
	return nil
}

// pause stops the child first, so that it cannot make new children meanwhile.
func (ch *child) pause() error {
	if err := ch.signal(syscall.SIGSTOP); err != nil {
		return err
	}
	if err := awaitStop(ch.pid()); err != nil {
		return err
	}
	return ch.signalOffspring(syscall.SIGSTOP)
}

func (ch *child) resume() error {
	return errors.Join(ch.signalOffspring(syscall.SIGCONT), ch.signal(syscall.SIGCONT))
}

func (ch *child) signalOffspring(s syscall.Signal) error {
	if ch.hasExited() {
		return nil
	}
	pids, err := offspring(ch.pid())
	if err != nil {
		return fmt.Errorf("list the children of process %d: %w", ch.pid(), err)
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, s); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("send %s to process %d: %w", s, pid, err)
		}
	}
	return nil
}
