package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/sendquota/sendquota/internal/devstack"
	"github.com/sendquota/sendquota/internal/testenv"
)

// lab holds the programs, the shared servers, and the report.
type lab struct {
	options
	report   *report
	servers  *testenv.Servers
	dir      string // of this run
	programs string // folder with api, worker and sendquota
}

func openLab(t testenv.T, o options) *lab {
	l := &lab{options: o, report: newReport(o), dir: t.TempDir()}
	testenv.Finally(t, func() error { return l.keepFailed(t.Failed()) })
	var err error
	l.programs, err = l.build(t.Context())
	testenv.Check(t, err)
	l.servers = testenv.NewServers(devstack.Config{OwnProcess: true, Progress: os.Stderr})
	testenv.Finally(t, l.servers.Close)
	return l
}

// keepFailed keeps the files of a failed run, without its programs.
func (l *lab) keepFailed(failed bool) error {
	if !failed {
		return nil
	}
	kept := filepath.Join(l.keep, fmt.Sprintf("seed-%d", l.seed))
	testenv.Say("histories, journals and logs are in %s", kept)
	return errors.Join(os.RemoveAll(kept), os.RemoveAll(filepath.Join(l.dir, "bin")), os.CopyFS(kept, os.DirFS(l.dir)))
}
