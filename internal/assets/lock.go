package assets

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"strings"
)

// Locked is a line of a lock: a third-party file in the same folder.
type Locked struct {
	File    string // its name here; with the ending .gz it is compressed here, and only here
	Package string // of npm
	Version string
	Source  string // its path in the package
	SHA256  string // of the file as it was published, in hex; a dash: not known yet
}

// ReadLock reads the lock of a folder.
func ReadLock(folder fs.FS) ([]Locked, error) {
	text, err := fs.ReadFile(folder, LockName)
	if err != nil {
		return nil, err
	}
	var all []Locked
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] == "#" {
			continue
		}
		if len(words) != 5 {
			return nil, fmt.Errorf("%s: a line has a file, a package, a version, a path and a hash: %q", LockName, line)
		}
		all = append(all, Locked{words[0], words[1], words[2], words[3], words[4]})
	}
	return all, nil
}

// Verify returns the differences between a folder of third-party files and its lock: changed, missing and unlisted
// files.
func Verify(folder fs.FS) []error {
	lock, err := ReadLock(folder)
	if err != nil {
		return []error{err}
	}
	var wrong []error
	known := map[string]bool{LockName: true}
	for _, l := range lock {
		known[l.File] = true
		content, err := fs.ReadFile(folder, l.File)
		if err == nil && strings.HasSuffix(l.File, ".gz") {
			content, err = unpack(content)
		}
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", l.File, err))
		} else if got := Hash(content); got != l.SHA256 {
			wrong = append(wrong, fmt.Errorf("%s: the hash is %s, in %s it is %s", l.File, got, LockName, l.SHA256))
		}
	}
	entries, err := fs.ReadDir(folder, ".")
	if err != nil {
		return append(wrong, err)
	}
	for _, e := range entries {
		if !known[e.Name()] {
			wrong = append(wrong, fmt.Errorf("%s: %s does not name it", e.Name(), LockName))
		}
	}
	return wrong
}

// Hash returns the hash of a file in the form of the lock.
func Hash(content []byte) string {
	hash := sha256.Sum256(content)
	return hex.EncodeToString(hash[:])
}

func unpack(small []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(small))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}
