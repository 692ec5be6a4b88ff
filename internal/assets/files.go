package assets

import (
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
)

// Files serves files by their paths. Browsers may cache a path with the hash of the content, as [Files.Path] returns
// it, forever. Without the hash they revalidate the file on each use.
type Files struct {
	prefix string
	byPath map[string]*Page
	paths  map[string]string // with the hash, by the base name
}

// LockName is the name of the lock in a folder. It is not served.
const LockName = "assets.lock"

// types lists the file types to serve. Any other type is an error at boot.
var types = map[string]string{
	".js":  "text/javascript; charset=utf-8",
	".css": "text/css; charset=utf-8",
	".txt": "text/plain; charset=utf-8",
	".svg": "image/svg+xml",
	".png": "image/png",
}

// New returns all files of an embedded tree, to be served below a prefix that ends with a slash. A file whose name ends
// with .gz is served without that ending, with the type of its content. Base names are unique.
func New(prefix string, tree fs.FS) (*Files, error) {
	f := &Files{prefix: prefix, byPath: map[string]*Page{}, paths: map[string]string{}}
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Base(name) == LockName {
			return err
		}
		content, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		return f.add(name, content)
	})
	return f, err
}

func (f *Files) add(name string, content []byte) error {
	plain, packed := strings.CutSuffix(name, ".gz")
	media, known := types[path.Ext(plain)]
	if !known {
		return fmt.Errorf("%s: no content type is known for this ending", name)
	}
	if other, twice := f.paths[path.Base(plain)]; twice {
		return fmt.Errorf("%s: %s has the same name", name, other)
	}
	newPage := NewPage
	if packed {
		newPage = NewPacked
	}
	p := newPage(content, "Content-Type", media, "X-Content-Type-Options", "nosniff")
	f.byPath[f.prefix+plain] = p
	f.paths[path.Base(plain)] = f.prefix + plain + "?v=" + p.tag
	return nil
}

// Path returns the path of a file with the hash of its content, given its base name. It is for templates: an unknown
// name is an error.
func (f *Files) Path(name string) (string, error) {
	if p, ok := f.paths[name]; ok {
		return p, nil
	}
	return "", fmt.Errorf("there is no file %q", name)
}

// Paths returns the paths that are served, without hashes, in order.
func (f *Files) Paths() []string { return slices.Sorted(maps.Keys(f.byPath)) }

// ServeHTTP sends a file.
func (f *Files) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p, ok := f.byPath[r.URL.Path]
	switch {
	case !ok:
		http.NotFound(w, r)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "the path does not support this method", http.StatusMethodNotAllowed)
	case r.URL.Query().Get("v") == p.tag:
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
		p.ServeHTTP(w, r)
	default:
		p.ServeHTTP(w, r)
	}
}
