//go:build !linux

package process

import (
	"errors"
	"os/exec"
	"strconv"
	"syscall"
)

// attributes give a child its user and a process group of its own. Only Linux
// can signal a child whose parent died: elsewhere a parent killed with SIGKILL
// leaves its children running.
func attributes(user *syscall.Credential, _ syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Credential: user}
}

// threads does not look: only Linux resumes a stopped child whose parent died.
func threads(int) (stopped, running int) { return 1, 0 }

// children lists the children of a process; none, if it is gone.
func children(pid int) ([]int, error) {
	text, err := exec.Command("pgrep", "-P", strconv.Itoa(pid)).Output()
	var none *exec.ExitError
	if errors.As(err, &none) && none.ExitCode() == 1 {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return numbers(text)
}
