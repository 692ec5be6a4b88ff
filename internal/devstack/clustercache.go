package devstack

import (
	"archive/tar"
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// initdb and the Seed take most of the time of a start, and `go test ./...` starts
// many servers. So the data folder that they made is kept beside what Go has
// built, as one archive: whatever removes old files there removes all or nothing.

// keptPattern names the archives; staleAfter is how long after its last use one is removed.
const (
	keptPattern = "sendquota-postgres-"
	staleAfter  = 48 * time.Hour
)

// cachePath names the archive for these binaries and this Seed. Another version,
// or the same one from elsewhere, gets another.
func (c Config) cachePath(a *account, bin string) (string, error) {
	version, err := exec.Command(filepath.Join(bin, "postgres"), "--version").Output()
	if err != nil {
		return "", fmt.Errorf("%s/postgres --version: %w", bin, err)
	}
	real, err := filepath.EvalSymlinks(filepath.Join(bin, "postgres"))
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%s", real, version, c.Seed.Name))
	return filepath.Join(cacheFolder(a), fmt.Sprintf("%s%x.tar", keptPattern, sum[:6])), nil
}

// cacheFolder returns Go's build cache, or a temp folder if the cache cannot be created.
func cacheFolder(a *account) string {
	dir := os.Getenv("GOCACHE")
	if user, err := os.UserCacheDir(); dir == "" && err == nil {
		dir = filepath.Join(user, "go-build")
	}
	if !filepath.IsAbs(dir) || os.MkdirAll(dir, 0o777) != nil {
		return tempFolder(a)
	}
	return dir
}

// fill has the Seed fill a new cluster, and keeps the result for later starts.
func (c Config) fill(ctx context.Context, f *folder, cl *cluster, r recipe) error {
	if c.Seed.Make != nil {
		addr, child, err := r.launchAnywhere(ctx, f)
		if err != nil {
			return err
		}
		if err := errors.Join(c.Seed.Make(ctx, r.url(addr)), stop(child)); err != nil {
			return fmt.Errorf("fill the new data folder: %w", err)
		}
	}
	cache, err := c.cachePath(f.account, cl.bin)
	if err == nil {
		removeStale(filepath.Dir(cache))
		err = packCluster(cl.data, cache)
	}
	if err != nil {
		c.log.Printf("postgres: the next start will be slower: %v", err)
	}
	return nil
}

// removeStale removes the archives that no start has used for a while.
func removeStale(dir string) {
	paths, _ := filepath.Glob(filepath.Join(dir, keptPattern+"*")) // fails on a bad pattern only
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil && time.Since(info.ModTime()) > staleAfter {
			_ = os.Remove(path)
		}
	}
}

// packCluster writes the archive. Several processes may do so at once; each
// puts a whole one in place.
func packCluster(data, cache string) error {
	f, err := os.CreateTemp(filepath.Dir(cache), filepath.Base(cache)+".")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	defer f.Close()
	buffered := bufio.NewWriterSize(f, 1<<20)
	archive := tar.NewWriter(buffered)
	// Without the Sync, a power cut could leave the name without the content.
	for _, step := range []func() error{
		func() error { return archive.AddFS(os.DirFS(data)) },
		archive.Close, buffered.Flush, f.Sync, f.Close,
		func() error { return os.Rename(f.Name(), cache) },
	} {
		if err := step(); err != nil {
			return fmt.Errorf("keep the data folder: %w", err)
		}
	}
	return nil
}

// unpackCluster makes the data from the archive. Whatever is wrong with the
// archive, the data is made again.
func unpackCluster(cache, data string, a *account) error {
	f, err := os.OpenFile(cache, os.O_RDONLY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	// Others can write to the temp folder too: only our own file is trusted.
	if stat, ok := info.Sys().(*syscall.Stat_t); !ok || !info.Mode().IsRegular() || stat.Uid != uint32(os.Geteuid()) {
		return fmt.Errorf("%s is not ours", cache)
	}
	if err := makeOwned(data, a, os.Mkdir(data, 0o700)); err != nil {
		return err
	}
	now := time.Now()
	_ = os.Chtimes(cache, now, now) // see removeStale
	archive := tar.NewReader(bufio.NewReaderSize(f, 1<<20))
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			_, err := os.Stat(filepath.Join(data, "PG_VERSION"))
			return err
		}
		if err != nil {
			return err
		}
		if err := unpackEntry(archive, header, data, a); err != nil {
			return err
		}
	}
}

func unpackEntry(archive *tar.Reader, header *tar.Header, data string, a *account) error {
	if !filepath.IsLocal(header.Name) {
		return fmt.Errorf("%s leads out of the archive", header.Name)
	}
	path := filepath.Join(data, header.Name)
	switch header.Typeflag {
	case tar.TypeDir:
		return makeOwned(path, a, os.MkdirAll(path, 0o700))
	case tar.TypeReg:
		f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		_, err = io.Copy(f, archive)
		return makeOwned(path, a, errors.Join(err, f.Close()))
	default:
		return fmt.Errorf("%s is neither a file nor a folder", header.Name)
	}
}

// makeOwned gives what was just made to the account, unless making failed.
func makeOwned(path string, a *account, err error) error {
	if err != nil || a == nil {
		return err
	}
	return os.Lchown(path, int(a.uid), int(a.gid))
}
