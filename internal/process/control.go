package process

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/sendquota/sendquota/internal/duration"
)

// Signal sends a signal to the process. One that is gone already is no error.
func (p *Process) Signal(s syscall.Signal) error {
	if err := p.process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("send %s to %s, process %d: %w", s, p.Name, p.Pid(), err)
	}
	return nil
}

// Stop ends the process in good order and waits for it. It fails if the process
// ends with an error, or has done so before, and if it has to be killed because
// it does not end in time.
func (p *Process) Stop(within time.Duration) error {
	// The kernel keeps the signal for a frozen process until it is thawed.
	if err := errors.Join(p.Signal(p.End), p.Thaw()); err != nil {
		return err
	}
	select {
	case <-p.exited:
		if p.err != nil {
			return fmt.Errorf("%s: %w; it said:\n%s", p.Name, p.err, p.LogTail())
		}
		return nil
	case <-time.After(within):
		return errors.Join(fmt.Errorf("%s did not end within %s and was killed; it said:\n%s", p.Name, duration.Words(within), p.LogTail()), p.Kill())
	}
}

// Kill ends the process with SIGKILL, as a crash would, and waits until it is gone. It thaws the process' children, so
// that they can end by themselves.
func (p *Process) Kill() error {
	if err := errors.Join(p.signalChildren(syscall.SIGCONT), p.Signal(syscall.SIGKILL)); err != nil {
		return err
	}
	<-p.exited
	return nil
}

// Freeze stops the process with SIGSTOP, and then its children, so that it can
// not make new ones meanwhile: connections stay open and nothing answers.
func (p *Process) Freeze() error {
	if err := errors.Join(p.Signal(syscall.SIGSTOP), awaitFrozen(p.Pid())); err != nil {
		return err
	}
	return p.signalChildren(syscall.SIGSTOP)
}

// Thaw ends a Freeze.
func (p *Process) Thaw() error {
	return errors.Join(p.signalChildren(syscall.SIGCONT), p.Signal(syscall.SIGCONT))
}

// Frozen reports whether all of the process is stopped, by a Freeze or by itself. One that has died is not frozen.
func (p *Process) Frozen() bool {
	stopped, running := threads(p.Pid())
	return stopped > 0 && running == 0 && p.Alive()
}

func (p *Process) signalChildren(s syscall.Signal) error {
	if !p.Alive() {
		return nil
	}
	pids, err := children(p.Pid())
	if err != nil {
		return fmt.Errorf("list the children of %s, process %d: %w", p.Name, p.Pid(), err)
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, s); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("send %s to process %d: %w", s, pid, err)
		}
	}
	return nil
}

// awaitFrozen waits until a process that was sent SIGSTOP has stopped, or is gone.
// Before that it might still make children, and the kernel would not resume it if
// we died, as it does a stopped one: it would stay for ever.
func awaitFrozen(pid int) error {
	for deadline := time.Now().Add(readyTimeout); ; time.Sleep(time.Millisecond) {
		if _, running := threads(pid); running == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("process %d does not stop within %s", pid, duration.Words(readyTimeout))
		}
	}
}

// numbers reads process ids.
func numbers(text []byte) (pids []int, err error) {
	for _, word := range strings.Fields(string(text)) {
		pid, err := strconv.Atoi(word)
		if err != nil {
			return nil, err
		}
		pids = append(pids, pid)
	}
	return pids, nil
}
