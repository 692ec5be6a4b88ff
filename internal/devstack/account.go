package devstack

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// account is the user that the children run as when we are root.
type account struct{ uid, gid uint32 }

// childAccount returns the account of the Unix user "nobody" if we are root, and else nil: the children then run as our
// user.
func childAccount() (*account, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("nobody")
	if err != nil {
		return nil, fmt.Errorf("servers are not run as root: %w", err)
	}
	uid, uidErr := strconv.ParseInt(u.Uid, 10, 64) // -2 on some systems
	gid, gidErr := strconv.ParseInt(u.Gid, 10, 64)
	if err := errors.Join(uidErr, gidErr); err != nil {
		return nil, fmt.Errorf("user nobody: %w", err)
	}
	return &account{uid: uint32(uid), gid: uint32(gid)}, nil
}

// owner returns the user id that owns the account's files.
func (a *account) owner() uint32 {
	if a == nil {
		return uint32(os.Geteuid())
	}
	return a.uid
}

// credential is the account as the kernel wants it; nil: the own user.
func (a *account) credential() *syscall.Credential {
	if a == nil {
		return nil
	}
	return &syscall.Credential{Uid: a.uid, Gid: a.gid}
}

// canEnter reports whether the account may reach the files in dir. It checks the permissions for "others" on dir and
// everything above.
func (a *account) canEnter(dir string) bool {
	if a == nil {
		return true
	}
	for {
		info, err := os.Stat(dir)
		if err != nil || info.Mode()&0o001 == 0 {
			return false
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return true
		}
		dir = parent
	}
}

// claimFolder makes dir, or takes over an existing one, as a folder that only
// the account can read. A link, or the folder of another user, is refused:
// in a temp folder for all, another user may have put it there.
func (a *account) claimFolder(dir string) error {
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a folder", dir)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fmt.Errorf("%s: owner unknown", dir)
	}
	switch stat.Uid {
	case a.owner():
		return os.Chmod(dir, 0o700)
	case uint32(os.Geteuid()): // just made, or made by a run that died right here
		if err := os.Chmod(dir, 0o700); err != nil {
			return err
		}
		return os.Lchown(dir, int(a.uid), int(a.gid))
	default:
		return fmt.Errorf("%s belongs to user %d, not to user %d; remove it or choose another folder", dir, stat.Uid, a.owner())
	}
}
