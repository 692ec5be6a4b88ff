// Package build returns the version of the running program. It reads the stamp
// that the Go tool writes into every binary, and values that the linker sets:
//
//	go build -ldflags "-X github.com/sendquota/sendquota/internal/build.version=v1.2.3"
package build

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
)

// The linker sets these. If they are empty, the Go tool's stamp counts.
var version, revision string

// Info names a build.
type Info struct {
	Version  string // such as v1.2.3; "devel" if it is not known
	Revision string // the commit, with "-dirty" if files were changed; "unknown" if it is not known
	Go       string // the version of Go that built it
}

// Read returns the build of the running program.
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

// String returns the text that --version prints after the name of the program.
func (i Info) String() string {
	return fmt.Sprintf("%s (revision %s, %s)", i.Version, i.Revision, i.Go)
}
