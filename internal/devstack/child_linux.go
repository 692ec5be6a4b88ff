package devstack

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// processAttributes gives the child its account, a process group of its own
// (a Ctrl-C in the terminal is for us, we then stop the child in good order)
// and a signal for the case that we die first.
func processAttributes(a *account, orphan syscall.Signal) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: orphan}
	if a != nil {
		attr.Credential = &syscall.Credential{Uid: a.uid, Gid: a.gid}
	}
	return attr
}

// awaitStop waits until every thread of a process that was sent SIGSTOP has
// stopped, or the process is gone. Before that it might still make children,
// and the kernel would not resume it if we died, as it does a stopped one: it
// would stay for ever.
func awaitStop(pid int) error {
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		stats, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
		if err != nil {
			return err
		}
		running := slices.ContainsFunc(stats, func(path string) bool {
			text, err := os.ReadFile(path) // "12 (name) T …", where the name may hold anything
			if err != nil {
				return false // gone meanwhile
			}
			_, state, _ := strings.Cut(string(text[max(0, bytes.LastIndexByte(text, ')')):]), " ")
			return !strings.HasPrefix(state, "T") && !strings.HasPrefix(state, "Z")
		})
		if !running {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("process %d does not stop within %s", pid, patience)
		}
	}
}

// offspring lists the children of a process.
func offspring(pid int) ([]int, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return nil, nil // gone meanwhile
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
