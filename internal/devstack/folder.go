package devstack

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/sendquota/sendquota/internal/process"
)

// folder holds the files of one service: the lock, the log and the password are in dir, which is ours. The data is in a
// folder of its own that belongs to the server's account.
type folder struct {
	dir       string
	data      string
	service   string
	account   *account
	lock      *os.File
	throwAway bool
}

// stopTimeout bounds how long a server may take to stop, and its lock to be free. Both take well under a second unless
// the machine is overloaded.
const stopTimeout = time.Minute

// throwAwayPattern names the folders that may be swept once their lock is free.
const throwAwayPattern = "sendquota-throwaway-"

// openFolder locks and makes the folder of a service: below c.Dir, or a new
// one in the temp folder.
func (c Config) openFolder(service string) (*folder, error) {
	account, err := childAccount()
	if err != nil {
		return nil, err
	}
	if c.Dir != "" {
		// The server runs in another working folder.
		if c.Dir, err = filepath.Abs(c.Dir); err != nil {
			return nil, err
		}
	}
	f := &folder{dir: c.Dir, service: service, account: account, throwAway: c.Dir == ""}
	if f.throwAway {
		sweep(memoryFolder)
		sweep(tempFolder(account))
		err = f.lockNew(c.throwAwayParent(account))
	} else {
		err = f.lockKept()
	}
	if err != nil {
		return nil, err
	}
	// The log of the last run goes, so that it does not grow for ever.
	_ = os.Remove(f.logPath())
	if err := f.makeData(); err != nil {
		return nil, errors.Join(fmt.Errorf("make the data folder of %s: %w", service, err), f.close())
	}
	if f.data != f.ownData() {
		c.log.Printf("%s: its data is in %s, since the Unix user nobody cannot enter %s", service, f.data, f.dir)
	}
	return f, nil
}

func (f *folder) lockPath() string { return f.file("lock") }
func (f *folder) logPath() string  { return f.file("log") }
func (f *folder) ownData() string  { return filepath.Join(f.dir, f.service) }

func (f *folder) file(suffix string) string {
	return filepath.Join(f.dir, f.service+"."+suffix)
}

// command is c as a child that works in this folder. Its environment is always
// the same, so that no server behaves differently because of the caller's locale.
func (f *folder) command(c process.Command) process.Command {
	c.Dir, c.Log, c.Lock, c.User, c.Env = f.data, f.logPath(), f.lock, f.account.credential(), []string{"LC_ALL=C", "TZ=UTC"}
	return c
}

// password returns the password of a kept server, made when it is first asked for.
func (f *folder) password() (string, error) {
	text, err := os.ReadFile(f.file("password"))
	if !errors.Is(err, os.ErrNotExist) {
		return strings.TrimSpace(string(text)), err
	}
	password := rand.Text()
	return password, os.WriteFile(f.file("password"), []byte(password+"\n"), 0o600)
}

func (f *folder) lockKept() error {
	if err := os.MkdirAll(f.dir, 0o755); err != nil {
		return err
	}
	var err error
	f.lock, err = takeLock(f.lockPath(), stopTimeout)
	return err
}

func (f *folder) lockNew(parent string) error {
	for {
		dir, err := os.MkdirTemp(parent, throwAwayPattern)
		if err != nil {
			return err
		}
		f.dir = dir
		if err := os.Chmod(dir, 0o711); err != nil {
			return err
		}
		f.lock, err = tryLock(f.lockPath())
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return err
		}
		// A sweep was quicker and took the folder for an abandoned one.
	}
}

// makeData makes the data folder in dir, or, if the account cannot go there,
// in a folder for all under a name that the next run will find again.
func (f *folder) makeData() error {
	f.data = f.ownData()
	if !f.throwAway && !f.account.canEnter(f.dir) {
		sum := sha256.Sum256([]byte(f.dir))
		f.data = filepath.Join(lastingFolder(f.account), fmt.Sprintf("sendquota-%x-%s", sum[:6], f.service))
	}
	return f.account.claimFolder(f.data)
}

// close waits until nothing that was started here runs any more, unlocks, and
// removes throw-away data.
func (f *folder) close() error {
	err := f.lock.Close()
	// Children of a killed Postgres hold the lock until they have noticed.
	last, lockErr := lockWhenFree(f.lockPath(), tryLockAgain, stopTimeout)
	if errors.Is(lockErr, errOthers) {
		return err // the next run has it already, or a sweep does our work
	}
	if lockErr != nil {
		return errors.Join(err, lockErr)
	}
	if f.throwAway {
		err = errors.Join(err, os.RemoveAll(f.dir))
	}
	return errors.Join(err, last.Close())
}

// tempFolder is the system's temp folder, or /tmp if the account cannot enter
// the one that the environment names.
func tempFolder(a *account) string {
	if dir := os.TempDir(); a.canEnter(dir) {
		return dir
	}
	return "/tmp"
}

// lastingFolder is a folder for all that outlives a reboot, as /tmp does not,
// unless the environment names another.
func lastingFolder(a *account) string {
	const dir = "/var/tmp"
	if os.Getenv("TMPDIR") == "" && a.canEnter(dir) {
		return dir
	}
	return tempFolder(a)
}

// memoryFolder is Linux' file system in memory, open to all users. A new database consists of some three hundred files,
// which a disk creates far more slowly.
const memoryFolder = "/dev/shm"

// throwAwayParent returns the parent of throw-away folders: in memory, unless there is little room, as in most
// containers, or the caller wants a disk.
func (c Config) throwAwayParent(a *account) string {
	const enough = 2 << 30
	var room syscall.Statfs_t
	if c.Durable || os.Getenv("TMPDIR") != "" || !a.canEnter(memoryFolder) ||
		syscall.Statfs(memoryFolder, &room) != nil || uint64(room.Bavail)*uint64(room.Bsize) < enough {
		return tempFolder(a)
	}
	return memoryFolder
}

// sweep removes what throw-away servers of killed processes left behind in
// this folder. It is best effort: the next start tries again.
func sweep(parent string) {
	locks, err := filepath.Glob(filepath.Join(parent, throwAwayPattern+"*", "*.lock"))
	if err != nil {
		return
	}
	for _, path := range locks {
		info, err := os.Lstat(filepath.Dir(path))
		if err != nil || !info.IsDir() {
			continue
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); !ok || stat.Uid != uint32(os.Geteuid()) {
			continue
		}
		if lock, err := tryLockExisting(path); err == nil {
			_ = os.RemoveAll(filepath.Dir(path))
			_ = lock.Close()
		}
	}
}
