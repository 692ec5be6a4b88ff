package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/sendquota/sendquota/internal/devstack"
	"github.com/sendquota/sendquota/internal/testenv"
)

// lab is where everything happens: the programs, the servers that the parts
// share, and the report.
type lab struct {
	options
	report   *report
	servers  *testenv.Servers
	dir      string // of this run
	programs string // folder with api, worker and sendquota
}

func openLab(t testenv.T, o options) *lab {
	dir, err := os.MkdirTemp("", "sendquota-chaos-")
	testenv.Check(t, err)
	l := &lab{options: o, report: newReport(o), dir: dir}
	testenv.Finally(t, func() error { return l.clear(t.Failed()) })
	l.programs, err = l.build(t.Context())
	testenv.Check(t, err)
	l.servers = testenv.NewServers(devstack.Config{OwnProcess: true, Progress: os.Stderr})
	testenv.Finally(t, l.servers.Close)
	return l
}

// clear removes the files of the run. Those of a failed one are kept elsewhere.
func (l *lab) clear(failed bool) error {
	if failed {
		kept := filepath.Join(l.keep, fmt.Sprintf("seed-%d", l.seed))
		_ = os.RemoveAll(kept)
		_ = os.RemoveAll(filepath.Join(l.dir, "bin"))
		if err := os.CopyFS(kept, os.DirFS(l.dir)); err != nil {
			return err
		}
		testenv.Say("histories, journals and logs are in %s", kept)
	}
	return os.RemoveAll(l.dir)
}
