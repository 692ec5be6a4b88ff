// Package build says which sendquota a program is. It reads what the Go tool
// stamps into every binary, and what was set when it was linked:
//
//	go build -ldflags "-X github.com/sendquota/sendquota/internal/build.version=v1.2.3"
package build

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
)

// Set by the linker; empty: the Go tool's stamp counts.
var version, revision string

// Info names a build.
type Info struct {
	Version  string // such as v1.2.3; "devel" if it is not known
	Revision string // the commit, with "-dirty" if files were changed; "unknown" if it is not known
	Go       string // the version of Go that built it
}

// Read returns what is known of the running program.
func Read() Info {
	stamp, _ := debug.ReadBuildInfo()
	return read(stamp)
}

func read(stamp *debug.BuildInfo) Info {
	i := Info{Version: version, Revision: revision, Go: runtime.Version()}
	if stamp != nil {
		if stamp.Main.Version != "(devel)" {
			i.Version = cmp.Or(i.Version, stamp.Main.Version)
		}
		i.Revision = cmp.Or(i.Revision, revisionOf(stamp.Settings))
	}
	i.Version, i.Revision = cmp.Or(i.Version, "devel"), cmp.Or(i.Revision, "unknown")
	return i
}

func revisionOf(settings []debug.BuildSetting) (commit string) {
	dirty := ""
	for _, s := range settings {
		switch {
		case s.Key == "vcs.revision":
			commit = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "-dirty"
		}
	}
	if commit == "" {
		return ""
	}
	return commit + dirty
}

// String is what --version prints after the name of the program.
func (i Info) String() string {
	return fmt.Sprintf("%s (revision %s, %s)", i.Version, i.Revision, i.Go)
}
