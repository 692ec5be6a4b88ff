//go:build !linux

package devstack

import (
	"errors"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// processAttributes gives the child its account and a process group of its
// own. Only Linux can signal a child whose parent died: elsewhere a parent
// killed with SIGKILL leaves its servers running.
func processAttributes(a *account, _ syscall.Signal) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true}
	if a != nil {
		attr.Credential = &syscall.Credential{Uid: a.uid, Gid: a.gid}
	}
	return attr
}

// awaitStop does nothing: only Linux resumes a stopped child whose parent died.
func awaitStop(int) error { return nil }

// offspring lists the children of a process.
func offspring(pid int) ([]int, error) {
	text, err := exec.Command("pgrep", "-P", strconv.Itoa(pid)).Output()
	var none *exec.ExitError
	if errors.As(err, &none) && none.ExitCode() == 1 {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, word := range strings.Fields(string(text)) {
		p, err := strconv.Atoi(word)
		if err != nil {
			return nil, err
		}
		pids = append(pids, p)
	}
	return pids, nil
}
