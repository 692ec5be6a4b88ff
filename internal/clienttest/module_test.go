package clienttest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sendquota/sendquota/internal/testenv"
)

// The client's module.
const folder, module = "../../client", "github.com/sendquota/sendquota/client"

// TestModule_NoRequirements: whoever imports the client gets no other module, and needs no network beside it.
func TestModule_NoRequirements(t *testing.T) {
	t.Parallel()
	where, err := filepath.Abs(folder)
	testenv.Check(t, err)
	dir := t.TempDir()
	write := func(name, text string) { testenv.Check(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600)) }
	write("go.mod", fmt.Sprintf("module example.com/caller\n\ngo 1.26.0\n\nrequire %s v0.0.0\n\nreplace %[1]s => %s\n", module, where))
	write("main.go", fmt.Sprintf("package main\n\nimport %q\n\nfunc main() { _, _ = client.New(\"https://api.example.com\", \"key\", client.Config{}) }\n", module))
	for _, row := range []struct{ command, want string }{
		{"mod tidy", ""},
		{"list -m all", "example.com/caller\n" + module + " v0.0.0 => " + where + "\n"},
		{"build -o caller .", ""},
	} {
		cmd := exec.Command("go", strings.Fields(row.command)...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOPROXY=off", "GOWORK=off")
		if out, err := cmd.CombinedOutput(); err != nil || string(out) != row.want {
			t.Errorf("go %s: %q, %v", row.command, out, err)
		}
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		text, err := os.ReadFile(filepath.Join(folder, name))
		if os.IsNotExist(err) && name == "go.sum" {
			continue
		}
		if err != nil || name == "go.sum" || strings.Contains(string(text), "require") {
			t.Errorf("%s has requirements: %s, %v", name, text, err)
		}
	}
}

// TestExamples: the examples of the client's documentation do what they say.
func TestExamples(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("go", "test", "-vet=off", "-count=1", "-v", "-run", "^Example", ".")
	cmd.Dir, cmd.Env = folder, append(os.Environ(), "SENDQUOTA_API="+server.address, "SENDQUOTA_API_KEY="+newKey())
	out, err := cmd.CombinedOutput()
	if n := strings.Count(string(out), "--- PASS: Example"); err != nil || n < 6 {
		t.Errorf("%d examples passed, %v\n%s", n, err, out)
	}
}
