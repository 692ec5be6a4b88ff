package devstack

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// Many make throw-away folders while others sweep: no folder that is in use
// disappears.
func TestSweep_LivingServers(t *testing.T) {
	t.Parallel()
	temp := openDir(t)
	a, err := childAccount()
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	done := make(chan struct{})
	for range 2 {
		all.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					sweep(temp)
				}
			}
		})
	}
	var makers sync.WaitGroup
	for range 4 {
		makers.Go(func() {
			for range 200 {
				f := &folder{service: "redis", account: a, throwAway: true}
				if err := f.lockNew(temp); err != nil {
					t.Error(err)
					return
				}
				if err := f.makeData(); err != nil {
					t.Error(err)
				}
				if err := f.close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	makers.Wait()
	close(done)
	all.Wait()
	left, err := filepath.Glob(filepath.Join(temp, throwAwayPattern+"*", "*.lock"))
	if err != nil || left != nil {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestLock_DeadHolder(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	first, err := tryLock(path)
	if err != nil {
		t.Fatal(err)
	}
	// The holder is dead, but something that it started still has the lock.
	if err := os.WriteFile(path, []byte("1073741824\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := takeLock(path, time.Millisecond); err == nil {
		t.Fatal("taken while another process has it")
	}
	taken := make(chan error)
	go func() {
		second, err := takeLock(path, stopTimeout)
		if err == nil {
			err = second.Close()
		}
		taken <- err
	}()
	closeIt(t, first)
	if err := <-taken; err != nil {
		t.Error(err)
	}
	if got := holder(path); got != os.Getpid() {
		t.Errorf("the file names process %d", got)
	}
}
