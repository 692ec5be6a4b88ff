package devstack

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/sendquota/sendquota/internal/duration"
)

// ErrInUse is returned by a start on a Dir that another process uses.
var ErrInUse = errors.New("in use")

// pollEvery is the interval between attempts to get a lock that another process holds: flock itself would wait without
// a limit.
const pollEvery = 10 * time.Millisecond

// tryLock makes and locks the file at path and writes our process id into it.
// It returns syscall.EWOULDBLOCK if another process has the lock, or had it and
// has removed the file meanwhile.
func tryLock(path string) (*os.File, error) { return lockFile(path, os.O_CREATE) }

// tryLockExisting is tryLock that does not make the file, for removing the folder
// around it: another process may be removing that, too.
func tryLockExisting(path string) (*os.File, error) { return lockFile(path, 0) }

// errOthers: another process has taken our former lock.
var errOthers = errors.New("another process has the lock now")

// tryLockAgain is tryLockExisting for a lock that this process had.
func tryLockAgain(path string) (*os.File, error) {
	f, err := tryLockExisting(path)
	gone := errors.Is(err, fs.ErrNotExist)
	if gone || errors.Is(err, syscall.EWOULDBLOCK) && holder(path) != os.Getpid() {
		return nil, errOthers
	}
	return f, err
}

func lockFile(path string, create int) (*os.File, error) {
	f, err := os.OpenFile(path, create|os.O_RDWR|syscall.O_NOFOLLOW, 0o644)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil && !isAt(f, path) {
		err = syscall.EWOULDBLOCK
	}
	if err == nil {
		err = f.Truncate(0)
	}
	if err == nil {
		_, err = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// isAt reports whether the path still leads to this file.
func isAt(f *os.File, path string) bool {
	ours, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Lstat(path)
	return err == nil && os.SameFile(ours, there)
}

// takeLock is tryLock that waits while the process named in the file is dead
// and only its children, on their way out, still hold the lock. A holder that
// is alive is an error at once.
func takeLock(path string, wait time.Duration) (*os.File, error) {
	return lockWhenFree(path, func(path string) (*os.File, error) {
		f, err := tryLock(path)
		if pid := holder(path); errors.Is(err, syscall.EWOULDBLOCK) && alive(pid) {
			return nil, fmt.Errorf("%s is %w by process %d; stop that one first", path, ErrInUse, pid)
		}
		return f, err
	}, wait)
}

// Lock claims a file for this process, until it is released or the process ends.
// If another process has it, the error is ErrInUse.
func Lock(path string) (release func() error, err error) {
	f, err := takeLock(path, 0)
	if err != nil {
		return nil, err
	}
	return f.Close, nil
}

// lockWhenFree repeats a try until the lock is free, whichever process has it.
func lockWhenFree(path string, try func(string) (*os.File, error), wait time.Duration) (*os.File, error) {
	deadline := time.Now().Add(wait)
	for {
		f, err := try(path)
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return f, err
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("%s is still %w after %s, by process %d or by what that has left running; stop it first", path, ErrInUse, duration.Words(wait), holder(path))
		}
		time.Sleep(pollEvery)
	}
}

// holder reads the process id in a lock file; 0 means not known.
func holder(path string) int {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0
	}
	return pid
}

// alive reports whether a process exists, even if we may not signal it.
func alive(pid int) bool {
	if pid <= 0 {
		return false
	}
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}
