package build

import (
	"runtime"
	"runtime/debug"
	"testing"
)

func TestRead(t *testing.T) {
	stamp := func(version string, settings ...debug.BuildSetting) *debug.BuildInfo {
		return &debug.BuildInfo{Main: debug.Module{Version: version}, Settings: settings}
	}
	commit, clean, changed := debug.BuildSetting{Key: "vcs.revision", Value: "abc"}, debug.BuildSetting{Key: "vcs.modified", Value: "false"}, debug.BuildSetting{Key: "vcs.modified", Value: "true"}
	for _, row := range []struct {
		linkedVersion, linkedRevision string
		stamp                         *debug.BuildInfo
		want                          string
	}{
		{"", "", nil, "devel (revision unknown, "},
		{"", "", stamp("(devel)"), "devel (revision unknown, "},
		{"", "", stamp("(devel)", changed), "devel (revision unknown, "},
		{"", "", stamp("v0.0.0-2026-abc", commit, clean), "v0.0.0-2026-abc (revision abc, "},
		{"", "", stamp("", commit, changed), "devel (revision abc-dirty, "},
		{"v1.2.3", "", stamp("v0.0.0-2026-abc", commit), "v1.2.3 (revision abc, "},
		{"v1.2.3", "def", stamp("(devel)", commit, changed), "v1.2.3 (revision def, "},
	} {
		version, revision = row.linkedVersion, row.linkedRevision
		if got := read(row.stamp).String(); got != row.want+runtime.Version()+")" {
			t.Errorf("%q, want %q", got, row.want)
		}
	}
	version, revision = "", ""
}
