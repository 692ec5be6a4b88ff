package devstack

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// installTimeout bounds an installation, which mostly waits for the network.
const installTimeout = 10 * time.Minute

// install puts the service's package on this machine, if we may.
func (c Config) install(ctx context.Context, s service) error {
	if c.noInstall {
		return errors.New("installing packages is switched off")
	}
	if os.Geteuid() == 0 {
		if _, err := exec.LookPath("apt-get"); err == nil {
			return c.aptInstall(ctx, s)
		}
	} else if _, err := exec.LookPath("brew"); err == nil {
		c.log.Printf("%s: not found; installing %s with brew", s.name, s.brew)
		return installer(ctx, []string{"HOMEBREW_NO_AUTO_UPDATE=1"}, "brew", "install", s.brew)
	}
	return errors.New("cannot be installed: that takes root and apt-get, or brew")
}

// aptInstall installs the Debian package without letting Debian start its
// server. Test binaries run side by side, so it takes turns with others.
func (c Config) aptInstall(ctx context.Context, s service) error {
	lock, err := lockWhenFree("/run/sendquota-install.lock", tryLock, installTimeout)
	if err != nil {
		return fmt.Errorf("install %s: %w", s.apt, err)
	}
	defer lock.Close()
	if _, err := s.binary(); err == nil {
		return nil // another process has installed it meanwhile
	}
	restore, err := denyServiceStart(c.searchPaths.policyFile)
	if err != nil {
		return fmt.Errorf("install %s: %w", s.apt, err)
	}
	defer restore()
	c.log.Printf("%s: not found; installing %s with apt-get", s.name, s.apt)
	env := []string{"DEBIAN_FRONTEND=noninteractive"}
	const wait = "-oDPkg::Lock::Timeout=120"
	if err := installer(ctx, env, "apt-get", "update", "-q", wait); err != nil {
		return err
	}
	return installer(ctx, env, "apt-get", "install", "-q", "-y", "--no-install-recommends", wait, s.apt)
}

// policyText answers Debian's packages, which ask before they start their
// service: exit status 101 means no.
const policyText = "#!/bin/sh\n# Made by sendquota for the time of an installation.\nexit 101\n"

// denyServiceStart puts the policy file there and returns what removes it. A
// file of another program stays as it is.
func denyServiceStart(policyFile string) (restore func(), err error) {
	text, err := os.ReadFile(policyFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := os.WriteFile(policyFile, []byte(policyText), 0o755); err != nil {
			return nil, err
		}
	case err != nil:
		return nil, err
	case string(text) != policyText:
		return func() {}, nil
	}
	return func() { _ = os.Remove(policyFile) }, nil
}

// installer runs a package manager. It is asked to stop, not killed, when the
// context ends: a package manager that is killed leaves a mess.
func installer(ctx context.Context, env []string, name string, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, installTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	out, err := cmd.CombinedOutput()
	if err != nil {
		text := strings.TrimSpace(string(out))
		return fmt.Errorf("%s %s: %w; it said:\n%s", name, strings.Join(args, " "), err, text[max(0, len(text)-1000):])
	}
	return nil
}
