package devstack

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A package manager that is a script: it notes how it is called, and its
// "install" puts a link to the real redis-server into PATH.
func TestInstall_Missing(t *testing.T) {
	installed(t)
	redis, err := usualPaths().redisBin()
	if err != nil {
		t.Fatal(err)
	}
	if redis, err = filepath.EvalSymlinks(redis); err != nil {
		t.Fatal(err)
	}
	t.Setenv("DEBIAN_FRONTEND", "")
	paths, path := bareMachine(t)
	notes := filepath.Join(path, "notes")
	manager, want := "brew", []string{"install redis"}
	if os.Geteuid() == 0 {
		manager, want = "apt-get", []string{
			"update -q -oDPkg::Lock::Timeout=120 noninteractive policy",
			"install -q -y --no-install-recommends -oDPkg::Lock::Timeout=120 redis-server noninteractive policy",
		}
	}
	script(t, filepath.Join(path, manager), `
policy=; test -x `+paths.policyFile+` && ! `+paths.policyFile+` && policy=policy
echo $* $DEBIAN_FRONTEND $policy >> `+notes+`
test $1 = update || /bin/ln -s `+redis+" "+filepath.Join(path, "redis-server"))

	c := Config{searchPaths: paths, noInstall: true}
	if _, err := StartRedis(t.Context(), c); err == nil || !strings.Contains(err.Error(), "switched off") {
		t.Fatalf("with noInstall: %v", err)
	}
	var said strings.Builder
	c.noInstall, c.Progress = false, &said
	s, err := StartRedis(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer closeIt(t, s)
	if !s.Private() {
		t.Error("what was installed was not started")
	}
	if !strings.Contains(said.String(), "with "+manager) {
		t.Errorf("nothing was said about the installation: %q", said.String())
	}
	got, err := os.ReadFile(notes)
	if err != nil {
		t.Fatal(err)
	}
	if strings.TrimSpace(string(got)) != strings.Join(want, "\n") {
		t.Errorf("%s was called with\n%swant\n%s", manager, got, strings.Join(want, "\n"))
	}
	if _, err := os.Stat(paths.policyFile); err == nil {
		t.Error("the policy file is still there")
	}
}

func TestInstall_Failure(t *testing.T) {
	paths, path := bareMachine(t)
	for _, manager := range []string{"apt-get", "brew"} {
		script(t, filepath.Join(path, manager), "echo the mirror is away; exit 100")
	}
	_, err := StartRedis(t.Context(), Config{searchPaths: paths})
	if err == nil || !strings.Contains(err.Error(), "the mirror is away") || !strings.Contains(err.Error(), "name servers that run elsewhere") {
		t.Errorf("error = %v", err)
	}
}

func TestInstall_ForeignPolicyFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "policy-rc.d")
	const theirs = "#!/bin/sh\nexit 0\n"
	if err := os.WriteFile(path, []byte(theirs), 0o755); err != nil {
		t.Fatal(err)
	}
	restore, err := denyServiceStart(path)
	if err != nil {
		t.Fatal(err)
	}
	restore()
	if got, err := os.ReadFile(path); string(got) != theirs {
		t.Errorf("it is now %q, %v", got, err)
	}
}
