package process

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// attributes give a child its user, a process group of its own (a Ctrl-C in the
// terminal is for us, we then stop the child in good order) and a signal for the
// case that we die first.
func attributes(user *syscall.Credential, orphan syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: orphan, Credential: user}
}

// threads counts the threads of a process that a signal has stopped, and those that run. One that has ended is neither.
func threads(pid int) (stopped, running int) {
	stats, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid)) // fails on a bad pattern only
	for _, path := range stats {
		text, err := os.ReadFile(path) // "12 (name) T …", where the name may hold anything
		if err != nil {
			continue // gone meanwhile
		}
		_, state, _ := strings.Cut(string(text[max(0, bytes.LastIndexByte(text, ')')):]), " ")
		switch {
		case strings.HasPrefix(state, "T"):
			stopped++
		case !strings.HasPrefix(state, "Z") && !strings.HasPrefix(state, "X"):
			running++
		}
	}
	return stopped, running
}

// children lists the children of a process; none, if it is gone.
func children(pid int) ([]int, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return numbers(text)
}
