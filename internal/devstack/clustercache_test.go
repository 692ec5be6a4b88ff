package devstack

import (
	"os"
	"testing"
)

// Whatever is wrong with what an earlier start kept, this one works.
func TestClusterCache_Damaged(t *testing.T) {
	temp := openDir(t)
	if err := os.Chmod(temp, 0o777); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", temp)
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
	bin, err := usualPlaces().postgresBin(0)
	if err != nil {
		t.Fatal(err)
	}
	cache, err := cachePath(a, bin)
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
		if err := os.WriteFile(cache, content, 0o600); err != nil {
			t.Fatal(err)
		}
		starts()
		info, err := os.Stat(cache)
		if err != nil || info.Size() < int64(len(whole))/2+1 {
			t.Errorf("%s: the cache was not made anew: %v", name, err)
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
