// Command fetch downloads with npm the third-party files that are listed in the locks of the given folders.
//
// A file with another hash than in the lock is an error. A hash "-" in the lock is filled in: for a new version, write
// its line without a hash, and review the hash in the resulting change.
package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/sendquota/sendquota/internal/assets"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "fetch:", err)
		os.Exit(1)
	}
}

func run(folders []string) error {
	packages := map[string]map[string][]byte{} // by name and version: their files by path
	for _, folder := range folders {
		lock, err := assets.ReadLock(os.DirFS(folder))
		if err != nil {
			return err
		}
		for _, l := range lock {
			spec := l.Package + "@" + l.Version
			if packages[spec] == nil {
				if packages[spec], err = download(spec); err != nil {
					return fmt.Errorf("%s: %w", spec, err)
				}
			}
			content, ok := packages[spec]["package/"+l.Source]
			if !ok {
				return fmt.Errorf("%s has no %s", spec, l.Source)
			}
			if err := put(folder, l, content); err != nil {
				return err
			}
		}
		if wrong := assets.Verify(os.DirFS(folder)); wrong != nil {
			return fmt.Errorf("%s: %w", folder, errors.Join(wrong...))
		}
	}
	return nil
}

// download returns the files of a package. npm verifies their integrity.
func download(spec string) (map[string][]byte, error) {
	dir, err := os.MkdirTemp("", "assets-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if out, err := exec.Command("npm", "pack", "--silent", "--pack-destination", dir, spec).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("npm pack: %w; it said:\n%s", err, out)
	}
	packed, err := filepath.Glob(filepath.Join(dir, "*.tgz"))
	if err != nil || len(packed) != 1 {
		return nil, fmt.Errorf("npm packed %v, %w", packed, err)
	}
	file, err := os.Open(packed[0])
	if err != nil {
		return nil, err
	}
	defer file.Close()
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for r := tar.NewReader(unpacked); ; {
		h, err := r.Next()
		if err == io.EOF {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		if files[h.Name], err = io.ReadAll(r); err != nil {
			return nil, err
		}
	}
}

// put writes a file and, where the lock has no hash of it yet, that.
func put(folder string, l assets.Locked, content []byte) error {
	hash := assets.Hash(content)
	switch l.SHA256 {
	case hash:
	case "-":
		if err := fill(filepath.Join(folder, assets.LockName), l, hash); err != nil {
			return err
		}
	default:
		return fmt.Errorf("%s: %s@%s has the hash %s, the lock has %s", l.File, l.Package, l.Version, hash, l.SHA256)
	}
	if strings.HasSuffix(l.File, ".gz") {
		var small bytes.Buffer
		w, _ := gzip.NewWriterLevel(&small, gzip.BestCompression) // the level is valid
		_, _ = w.Write(content)                                   // a buffer takes everything
		_ = w.Close()
		content = small.Bytes()
	}
	return os.WriteFile(filepath.Join(folder, l.File), content, 0o644)
}

// fill writes the hash into the line of a file.
func fill(lock string, l assets.Locked, hash string) error {
	text, err := os.ReadFile(lock)
	if err != nil {
		return err
	}
	lines := strings.Split(string(text), "\n")
	for i, line := range lines {
		if words := strings.Fields(line); len(words) == 5 && words[0] == l.File {
			lines[i] = strings.TrimSuffix(line, "-") + hash
		}
	}
	return os.WriteFile(lock, []byte(strings.Join(lines, "\n")), 0o644)
}
