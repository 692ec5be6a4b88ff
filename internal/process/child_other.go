//go:build !linux

package process

import "syscall"

// childAttributes give a child a process group of its own, since a Ctrl-C in
// the terminal is for us.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
