package main

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/sendquota/sendquota/internal/testenv"
)

// asProgram makes the binary of these tests the program itself.
const asProgram = "SENDQUOTA_TEST_AS_PROGRAM"

// TestMain runs the tests, or, in a process that a test starts, the program itself.
func TestMain(m *testing.M) {
	if os.Getenv(asTool) != "" { // by the name of these tests
		os.Args[0] = "sendquota"
	}
	if os.Getenv(asProgram) != "" || os.Getenv(asTool) != "" {
		main()
		return
	}
	testenv.Main(m)
}

// TestMain_ByName: the binary runs the program of the name under which it was started.
func TestMain_ByName(t *testing.T) {
	t.Parallel()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"/usr/local/bin/api": "Usage: api ", "worker": "Usage: worker ", "./sendquota": "Usage: sendquota ", "sq": "Usage: sendquota ",
	} {
		cmd := exec.Command(path)
		cmd.Args, cmd.Env = []string{name, "--help"}, append(os.Environ(), asProgram+"=1")
		if out, err := cmd.CombinedOutput(); err != nil || !strings.HasPrefix(string(out), want) {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

// TestImage_NoDev: the build tag of the image leaves out the installer of servers and miniredis.
func TestImage_NoDev(t *testing.T) {
	t.Parallel()
	for tag, want := range map[string]bool{"nodev": false, "other": true} {
		out, err := exec.Command("go", "list", "-deps", "-tags", tag, ".").Output()
		if err != nil {
			t.Fatal(err)
		}
		packages := strings.Fields(string(out))
		for _, name := range []string{"github.com/sendquota/sendquota/internal/devstack", "github.com/alicebob/miniredis/v2"} {
			if slices.Contains(packages, name) != want {
				t.Errorf("-tags %s: %s is linked: %t", tag, name, !want)
			}
		}
	}
}
