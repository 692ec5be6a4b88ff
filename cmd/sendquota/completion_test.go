package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestCompletion_Bash: bash runs the script, which completes commands and flags.
func TestCompletion_Bash(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(self, filepath.Join(dir, "sendquota")); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"sendquota tenants ren": "rename", "sendquota compl": "completion", "sendquota tenants list --js": "--json", "sendquota tenants rename ": "",
	} {
		script := `source <(sendquota completion bash) && words=($(complete -p sendquota)) && for i in "${!words[@]}"; do
			if [ "${words[i]}" = -C ]; then COMP_LINE="$1" COMP_POINT=${#1} "${words[i+1]//\'/}"; fi; done`
		cmd := exec.Command("bash", "-c", script, "bash", line)
		cmd.Env = []string{asTool + "=1", "HOME=" + dir, "PATH=" + dir + ":" + os.Getenv("PATH")}
		out, err := cmd.CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || got != want {
			t.Errorf("%q: %q, %v; want %q", line, got, err, want)
		}
	}
}

// TestCompletion_Shells: each shell has a script, and the error names an unknown shell.
func TestCompletion_Shells(t *testing.T) {
	t.Parallel()
	for shell, want := range map[string]string{"bash": "complete ", "zsh": "bashcompinit", "fish": "complete -f -c sendquota"} {
		var out strings.Builder
		if said, status := tool(t, nil, &out, "completion", shell); status != 0 || !strings.Contains(out.String(), want) {
			t.Errorf("%s: %d %s%s", shell, status, said, out.String())
		}
	}
	if said, status := tool(t, nil, nil, "completion", "tcsh"); status != 2 || !strings.Contains(said, "bash") {
		t.Errorf("%d %s", status, said)
	}
}
