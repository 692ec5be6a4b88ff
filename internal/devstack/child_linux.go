package devstack

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
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
