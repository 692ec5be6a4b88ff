package devstack

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// helperProcess is a running helper; see TestMain.
type helperProcess struct {
	helperReport
	cmd   *exec.Cmd
	stdin io.WriteCloser
	out   *bufio.Reader
}

// startHelper runs the test binary as a helper, as another user if credential
// is given, and waits until its servers answer.
func startHelper(t *testing.T, dir string, credential *syscall.Credential) *helperProcess {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if credential != nil {
		program = copyProgram(t, program)
	}
	h := &helperProcess{cmd: exec.Command(program)}
	h.cmd.Env = append(os.Environ(), helperVariable+"="+dir)
	h.cmd.Stderr = t.Output()
	h.cmd.Dir = "/"
	h.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: credential}
	if h.stdin, err = h.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := h.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	h.out = bufio.NewReader(out)
	if err := h.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.stdin.Close(); _ = h.cmd.Wait() })
	line, err := h.out.ReadBytes('\n')
	if err != nil {
		t.Fatalf("the helper did not start: %v", err)
	}
	if err := json.Unmarshal(line, &h.helperReport); err != nil {
		t.Fatal(err)
	}
	return h
}

// copyProgram puts the test binary where other users can run it.
func copyProgram(t *testing.T, program string) string {
	t.Helper()
	content, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(openDir(t), "devstack.test")
	if err := os.WriteFile(path, content, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func (h *helperProcess) killAndReap(t *testing.T) {
	t.Helper()
	if err := h.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = h.cmd.Wait() // it was killed, and says so
}

// locksFree reports whether nothing that was started in a folder runs any more: every child, and every child of a
// child, holds a lock of its own.
func locksFree(t *testing.T, dir string) bool {
	t.Helper()
	for _, service := range []string{"postgres", "redis"} {
		lock, err := tryLock(filepath.Join(dir, service+".lock"))
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return false
		}
		if err != nil {
			t.Fatal(err)
		}
		closeIt(t, lock)
	}
	return true
}

// TestKilledParent: no server is left of a run that is killed, and what it had is kept. The next run need not wait until
// they are gone.
func TestKilledParent(t *testing.T) {
	t.Parallel()
	installed(t)
	dir := openDir(t)
	h := startHelper(t, dir, nil)
	query(t, h.Database, "CREATE TABLE kept AS SELECT 42 AS n")
	h.killAndReap(t)
	eventually(t, "no server runs", func() bool { return locksFree(t, dir) })

	startHelper(t, dir, nil).killAndReap(t)
	s := start(t, Config{Dir: dir})
	if got := query(t, s.Postgres.URL, "SELECT n FROM kept"); got != int32(42) {
		t.Errorf("Postgres kept %v", got)
	}
}

func TestKilledParent_PausedServers(t *testing.T) {
	allOnly(t)
	installed(t)
	temp := openDir(t)
	if err := os.Chmod(temp, 0o777); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", temp)
	h := startHelper(t, "", nil)
	connect(t, h.Database)
	if _, err := io.WriteString(h.stdin, "pause\n"); err != nil {
		t.Fatal(err)
	}
	if line, err := h.out.ReadString('\n'); line != "paused\n" {
		t.Fatalf("the helper says %q, %v", line, err)
	}
	h.killAndReap(t)
	eventually(t, "a later start has swept what is left", func() bool {
		sweep(temp)
		left, err := filepath.Glob(filepath.Join(temp, throwAwayPattern+"*"))
		return err == nil && left == nil
	})
}

// TestAccount_NotRoot checks that the servers run without root's rights, and that a user who is not root needs no
// rights.
func TestAccount_NotRoot(t *testing.T) {
	t.Parallel()
	installed(t)
	dir := openDir(t)
	a, err := childAccount()
	if err != nil {
		t.Fatal(err)
	}
	run := func(name string, credential *syscall.Credential, wantUser uint32) {
		t.Run(name, func(t *testing.T) {
			h := startHelper(t, dir, credential)
			for _, pid := range []int{h.PostgresPid, h.RedisPid} {
				if got := userOf(t, pid); got != wantUser {
					t.Errorf("process %d runs as user %d, want %d", pid, got, wantUser)
				}
			}
			if err := h.stdin.Close(); err != nil {
				t.Fatal(err)
			}
			if err := h.cmd.Wait(); err != nil {
				t.Errorf("the helper ended with %v", err)
			}
		})
	}
	run("as we are", nil, a.owner())
	if a == nil {
		return
	}
	dir = openDir(t)
	if err := os.Chown(dir, int(a.uid), int(a.gid)); err != nil {
		t.Fatal(err)
	}
	run("as nobody", &syscall.Credential{Uid: a.uid, Gid: a.gid}, a.uid)
	if _, err := os.Stat(filepath.Join(dir, "postgres", "data", "PG_VERSION")); err != nil {
		t.Errorf("the data is not in the folder: %v", err)
	}
}

func userOf(t *testing.T, pid int) uint32 {
	t.Helper()
	info, err := os.Stat(filepath.Join("/proc", strconv.Itoa(pid)))
	if err != nil {
		t.Fatal(err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		t.Fatal("owner unknown")
	}
	return stat.Uid
}

// A folder that the account cannot enter, such as one below /root.
func TestAccount_ClosedFolder(t *testing.T) {
	a, err := childAccount()
	if err != nil {
		t.Fatal(err)
	}
	closed := filepath.Join(t.TempDir(), "project") // testing closes its folder to others
	temp := openDir(t)
	if err := os.Chmod(temp, 0o777); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", temp)
	c := Config{Dir: closed}.prepared()
	f, err := c.openFolder("postgres")
	if err != nil {
		t.Fatal(err)
	}
	first := f.data
	if err := f.close(); err != nil {
		t.Fatal(err)
	}
	if inTemp := strings.HasPrefix(first, temp); inTemp != (a != nil) {
		t.Errorf("the data is in %s", first)
	}
	if a == nil {
		return // our own servers can enter wherever we can
	}
	if f, err = c.openFolder("postgres"); err != nil || f.data != first {
		t.Fatalf("the second time the data is in %v, %v", f, err)
	}
	closeIt(t, f.lock)

	if err := os.Remove(first); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc", first); err != nil {
		t.Fatal(err)
	}
	if _, err := c.openFolder("postgres"); err == nil || !strings.Contains(err.Error(), "not a folder") {
		t.Errorf("a link in place of the folder: %v", err)
	}
	if err := os.Remove(first); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(first, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(first, 12345, 12345); err != nil {
		t.Fatal(err)
	}
	if _, err := c.openFolder("postgres"); err == nil || !strings.Contains(err.Error(), "belongs to user 12345") {
		t.Errorf("a folder of another user: %v", err)
	}
}
