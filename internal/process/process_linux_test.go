package process

import (
	"syscall"
	"testing"
	"time"
)

// A process that was killed, and that its parent has not waited for yet, is not a frozen one.
func TestThreads_OfAKilledProcess(t *testing.T) {
	pid, err := syscall.ForkExec("/bin/sleep", []string{"sleep", "60"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	state := func(want string, signal syscall.Signal, stopped, running int) {
		if err := syscall.Kill(pid, signal); err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
			s, r := threads(pid)
			if s == stopped && r == running {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: %d threads stopped, %d running, want %d and %d", want, s, r, stopped, running)
			}
		}
	}
	state("frozen", syscall.SIGSTOP, 1, 0)
	state("thawed", syscall.SIGCONT, 0, 1)
	state("killed", syscall.SIGKILL, 0, 0)
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(pid, &status, 0, nil); err != nil || status.Signal() != syscall.SIGKILL {
		t.Errorf("ended with %v, %v", status, err)
	}
}
