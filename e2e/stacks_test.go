package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sendquota/sendquota/internal/process"
	"github.com/sendquota/sendquota/internal/testenv"
)

// TestWorker_Stacks follows docs/operations.md for a stuck worker: it prints its stacks, and continues. A program in
// the place of docker does the same to the process as docker does to a container.
func TestWorker_Stacks(t *testing.T) {
	t.Parallel()
	b := setup(t)
	addr := testenv.FreeAddr(t)
	worker := b.Start("worker", "SENDQUOTA_METRICS_ADDR="+addr, "SENDQUOTA_LOG_LEVEL=error")
	testenv.Check(t, worker.AwaitListen(t.Context(), addr))
	bin, logged := t.TempDir(), filepath.Join(t.TempDir(), "log")
	docker := fmt.Sprintf("#!/bin/sh\ncase $2 in\nkill) kill -s $4 %d ;;\nlogs) until grep -s goroutines %[2]s; do sleep 0.1; done ;;\nesac\n", worker.Pid(), logged)
	testenv.Check(t, os.WriteFile(filepath.Join(bin, "docker"), []byte(docker), 0o755))
	shell := testenv.StartCommand(t, process.Command{
		Name: "bash", Path: "/bin/bash", Args: []string{"-e", "-u", "-o", "pipefail", "-c", commands(t, "stacks")},
		Env: []string{"PATH=" + bin + string(os.PathListSeparator) + os.Getenv("PATH")}, Log: filepath.Join(bin, "log"),
	})
	b.until("the worker logs its stacks", func() bool {
		text := worker.Log()
		return strings.Contains(text, `"msg":"goroutines"`) && strings.HasSuffix(text, "\n")
	})
	testenv.Check(t, os.WriteFile(logged+".new", []byte(worker.Log()), 0o600))
	testenv.Check(t, os.Rename(logged+".new", logged)) // whole, or not there
	<-shell.Exited()
	if text := shell.Log(); !strings.Contains(text, "\ngoroutine 1 [") || !strings.Contains(text, "\n\t/") && !strings.Contains(text, "\n\tgithub.com/") {
		t.Errorf("the commands print %.2000s", text)
	}
	if !worker.Alive() {
		t.Error("the worker has ended")
	}
	if out, err := exec.Command("curl", "-sS", "http://"+addr+"/debug/pprof/goroutine?debug=1").CombinedOutput(); err != nil || !strings.Contains(string(out), "goroutine profile") {
		t.Errorf("profiles: %v %.200s", err, out)
	}
}
