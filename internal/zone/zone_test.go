package zone_test

import (
	"archive/zip"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sendquota/sendquota/internal/zone"
)

var update = flag.Bool("update", false, "write the names of Go's zones into names.txt")

// TestNames compares names.txt with the database of zones that Go brings along.
func TestNames(t *testing.T) {
	t.Parallel()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	archive, err := zip.OpenReader(filepath.Join(strings.TrimSpace(string(root)), "lib", "time", "zoneinfo.zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	var names []string
	for _, f := range archive.File {
		if !strings.HasSuffix(f.Name, "/") && f.Name != "Factory" { // the zone of an unconfigured machine
			names = append(names, f.Name)
		}
	}
	slices.Sort(names)
	want := strings.Join(names, "\n") + "\n"
	if *update {
		if err := os.WriteFile("names.txt", []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got, err := os.ReadFile("names.txt"); err != nil || string(got) != want {
		t.Errorf("names.txt is not Go's list of zones (%v); run: go test ./internal/zone -run Names -update", err)
	}
}

func TestLoad(t *testing.T) {
	t.Parallel()
	for _, name := range allNames(t) {
		if loaded, err := zone.Load(name); err != nil || loaded.String() != name {
			t.Errorf("%s: %v, %v", name, loaded, err)
		}
	}
}

func allNames(t testing.TB) []string {
	t.Helper()
	text, err := os.ReadFile("names.txt")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(string(text))
}

func TestLoad_NearestName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"Europe/Berln":     "Europe/Berlin",
		"europe/berlin":    "Europe/Berlin",
		"Berlin":           "Europe/Berlin",
		"Europe/Tokio":     "Asia/Tokyo",
		"America/New York": "America/New_York",
		"America/NewYork":  "America/New_York",
		"Sidney":           "Australia/Sydney",
		"Lord Howe":        "Australia/Lord_Howe",
		"Asia/Katmandoo":   "Asia/Katmandu",
		"Etc/GMT+25":       "Etc/GMT+2",
		"utc":              "UTC",
		"Eurpoe/Berln":     "Europe/Berlin",
		"":                 "",
		"Local":            "",
		"Factory":          "",
		"Nope/Zone":        "",
		"Mars/X":           "",
		"Mars/Olympus":     "",
	} {
		loaded, err := zone.Load(name)
		var unknown *zone.UnknownError
		if !errors.As(err, &unknown) {
			t.Errorf("%q is %v, %v", name, loaded, err)
			continue
		}
		if unknown.Nearest != want || unknown.Name != name || want == "" && strings.Contains(err.Error(), "nearest") {
			t.Errorf("%q: %v, want %s", name, err, want)
		}
	}
	for _, name := range []string{"../zoneinfo/UTC", "right/UTC", "posix/UTC", strings.Repeat("Europe/", 100_000), "\x00", "Ä/Ö"} {
		if loaded, err := zone.Load(name); err == nil {
			t.Errorf("%.40q is %v", name, loaded)
		}
	}
}
