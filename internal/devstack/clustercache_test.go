package devstack

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestClusterCache_Damaged checks that a start ignores a damaged archive.
func TestClusterCache_Damaged(t *testing.T) {
	allOnly(t)
	t.Setenv("GOCACHE", t.TempDir())
	starts := func() {
		t.Helper()
		s, err := StartPostgres(t.Context(), Config{OwnProcess: true, Progress: t.Output()})
		if err != nil {
			t.Fatal(err)
		}
		closeIt(t, s)
	}
	starts()
	a, err := childAccount()
	if err != nil {
		t.Fatal(err)
	}
	bin, err := usualPaths().postgresBin(0)
	if err != nil {
		t.Fatal(err)
	}
	cache, err := Config{}.cachePath(a, bin)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(cache)
	if err != nil {
		t.Fatalf("nothing was kept: %v", err)
	}
	for name, content := range map[string][]byte{
		"half":     whole[:len(whole)/2],
		"empty":    nil,
		"nonsense": []byte("nonsense"),
	} {
		if testing.Short() && name == "nonsense" {
			continue // initdb takes long
		}
		if err := os.WriteFile(cache, content, 0o600); err != nil {
			t.Fatal(err)
		}
		starts()
		info, err := os.Stat(cache)
		if err != nil || info.Size() < int64(len(whole))/2+1 {
			t.Errorf("%s: the archive was not made again: %v", name, err)
		}
	}
	if err := os.Remove(cache); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", cache); err != nil {
		t.Fatal(err)
	}
	if err := unpackCluster(cache, t.TempDir()+"/data", a); err == nil {
		t.Error("a link is taken for our own archive")
	}
}

// TestSeed_MadeOnce: a later start has what the first one made, and a Seed of another name is made for itself.
func TestSeed_MadeOnce(t *testing.T) {
	allOnly(t)
	t.Setenv("GOCACHE", t.TempDir())
	made := map[string]int{}
	for _, name := range []string{"one", "one", "two"} {
		s, err := StartPostgres(t.Context(), Config{OwnProcess: true, Progress: t.Output(), Seed: Seed{Name: name, Make: func(ctx context.Context, url string) error {
			made[name]++
			return Exec(ctx, url, "CREATE TABLE seed AS SELECT '"+name+"' AS name")
		}}})
		if err != nil {
			t.Fatal(err)
		}
		if got := query(t, s.URL, "SELECT name FROM seed"); got != name {
			t.Errorf("the server of %s holds %v", name, got)
		}
		closeIt(t, s)
	}
	if made["one"] != 1 || made["two"] != 1 {
		t.Errorf("made %v", made)
	}
}

// TestRemoveStale: what no start has used for days goes.
func TestRemoveStale(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	long := time.Now().Add(-2 * staleAfter)
	for name, at := range map[string]time.Time{keptPattern + "old.tar": long, keptPattern + "used.tar": time.Now(), "another program's": long} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Chtimes(path, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	removeStale(dir)
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(left) != 2 || filepath.Base(left[1]) != keptPattern+"used.tar" {
		t.Errorf("left %v, %v", left, err)
	}
}
