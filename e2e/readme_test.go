package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sendquota/sendquota/internal/process"
	"github.com/sendquota/sendquota/internal/testenv"
)

// TestReadme_Walk runs `sendquota dev` in an empty folder, and then the commands of the README against it. Each must
// print the text of the "#" line above it. The shell names servers of production, which dev ignores.
func TestReadme_Walk(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../README.md")
	testenv.Check(t, err)
	b := &bundle{t: t}
	dir, addr := openFolder(t), testenv.FreeAddr(t)
	path := filepath.Join(programs(t), "sendquota")
	dev := testenv.StartCommand(t, process.Command{Path: path, Args: []string{"dev"}, Dir: dir,
		Env: []string{"SENDQUOTA_ADDR=" + addr, "DATABASE_URL=postgres://127.0.0.1:1/production", "REDIS_URL=redis://127.0.0.1:1"}, Log: filepath.Join(t.TempDir(), "log")})
	b.until("dev reports that it is running", func() bool { return strings.Contains(dev.Log(), "sendquota is running") })

	if n := strings.Count(dev.Log(), "ignoring DATABASE_URL and REDIS_URL"); n != 1 {
		t.Errorf("dev said %d times that it ignores the servers of the shell:\n%s", n, dev.Log())
	}
	if key, err := os.Stat(filepath.Join(dir, ".local", "seal-key")); err != nil || key.Mode() != 0o600 {
		t.Errorf("the key that seals secrets: %v, %v", key, err)
	}
	script, wanted := walk(t, strings.NewReplacer("bin/sendquota", path).Replace(string(readme)))
	bash := exec.Command("bash", "-e", "-u", "-o", "pipefail", "-c", script)
	bash.Dir = dir
	out, err := bash.CombinedOutput()
	if err != nil {
		t.Fatalf("the README's commands: %v\n%s", err, out)
	}
	answers := strings.Split(string(out), separator)
	for i, want := range wanted {
		if !strings.Contains(answers[i], want) {
			t.Errorf("the README promises %s; the command printed:\n%s", want, answers[i])
		}
	}
	if !strings.Contains(dev.Log(), "delivered to user-42") {
		t.Errorf("dev did not print the delivery:\n%s", dev.Log())
	}

	// A second run in the same folder names the address of the first one, whichever ports are free, and does not
	// disturb it.
	second := exec.Command(path, "dev")
	second.Dir = dir
	second.Env = append(os.Environ(), "SENDQUOTA_ADDR="+testenv.FreeAddr(t))
	out, err = second.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "sendquota runs already, at http://"+addr) || strings.Count(string(out), "\n") != 1 {
		t.Errorf("a second run: %v\n%s", err, out)
	}
	b.api = "http://" + addr
	if status, _ := b.call("GET", "/healthz", nil); status != 200 {
		t.Errorf("the first run answers %d afterwards", status)
	}
	b.stop(dev)
	if left, _ := filepath.Glob(filepath.Join(dir, ".local", "address")); left != nil {
		t.Errorf("left behind: %v", left)
	}
}

// openFolder is an empty folder that the servers' user may enter, as a clone of
// the repository usually is.
func openFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "sendquota-walk-")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	testenv.Check(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

const separator = "\n@@@\n"

// walk turns the README's block of commands into a script that prints a
// separator after each of them, and returns what each is to print.
func walk(t *testing.T, readme string) (script string, wanted []string) {
	t.Helper()
	_, rest, found := strings.Cut(readme, "<!-- walk:")
	_, rest, _ = strings.Cut(rest, "```bash\n")
	block, _, closed := strings.Cut(rest, "```")
	if !found || !closed {
		t.Fatal("the README has no walk")
	}
	var b strings.Builder
	for line := range strings.Lines(block) {
		if want, ok := strings.CutPrefix(line, "# "); ok {
			if len(wanted) > 0 {
				b.WriteString("printf '\\n@@@\\n'\n")
			}
			wanted = append(wanted, strings.TrimSpace(want))
		}
		b.WriteString(line)
	}
	return b.String(), wanted
}
