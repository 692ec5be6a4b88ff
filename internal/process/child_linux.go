package process

import "syscall"

// childAttributes give a child a process group of its own, since a Ctrl-C in
// the terminal is for us, and have the kernel kill it when we die.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
