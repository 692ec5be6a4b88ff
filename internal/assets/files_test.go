package assets

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"
)

func get(t *testing.T, h http.Handler, method, path string, headers ...string) *http.Response {
	t.Helper()
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func TestFiles_Served(t *testing.T) {
	packed := compressed([]byte("packed()"))
	f, err := New("/x/", fstest.MapFS{
		"static/a.css": {Data: []byte("a { color: red }")}, "vendor/b.js": {Data: []byte("b()")}, "vendor/c.js.gz": {Data: packed},
		"vendor/b.LICENSE.txt": {Data: []byte("free")}, "vendor/" + LockName: {Data: []byte("secret")},
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, media := range map[string]string{"a.css": "text/css; charset=utf-8", "b.js": "text/javascript; charset=utf-8", "c.js": "text/javascript; charset=utf-8", "b.LICENSE.txt": "text/plain; charset=utf-8"} {
		path, err := f.Path(name)
		if err != nil {
			t.Fatal(err)
		}
		kept := get(t, f, "GET", path)
		if kept.StatusCode != 200 || kept.Header.Get("Content-Type") != media || kept.Header.Get("X-Content-Type-Options") != "nosniff" || kept.Header.Get("Cache-Control") != "public, max-age=31536000, immutable" {
			t.Errorf("%s: %s %v", path, kept.Status, kept.Header)
		}
		if name == "c.js" != (kept.Header.Get("Content-Encoding") == "gzip") {
			t.Errorf("%s: the encoding is %q", path, kept.Header.Get("Content-Encoding"))
		}
		bare, _, _ := strings.Cut(path, "?")
		for _, other := range []string{bare, bare + "?v=", bare + "?v=older"} {
			asked := get(t, f, "GET", other)
			if asked.StatusCode != 200 || asked.Header.Get("Cache-Control") != "" || asked.Header.Get("Last-Modified") != "" || asked.Header.Get("ETag") != kept.Header.Get("ETag") {
				t.Errorf("%s: %s %v", other, asked.Status, asked.Header)
			}
			if same := get(t, f, "GET", other, "If-None-Match", asked.Header.Get("ETag")); same.StatusCode != 304 {
				t.Errorf("%s: %s for a browser that has it", other, same.Status)
			}
		}
		if r := get(t, f, "POST", bare); r.StatusCode != 405 || r.Header.Get("Allow") != "GET, HEAD" {
			t.Errorf("POST %s: %s %v", bare, r.Status, r.Header)
		}
		if r := get(t, f, "HEAD", bare); r.StatusCode != 200 || r.ContentLength == 0 {
			t.Errorf("HEAD %s: %s", bare, r.Status)
		}
	}
	for _, path := range []string{"/x/vendor/" + LockName, "/x/static/", "/x/static", "/x/vendor/c.js.gz", "/x/../x/b.js", "/static/a.css"} {
		if r := get(t, f, "GET", path); r.StatusCode != 404 {
			t.Errorf("%s: %s", path, r.Status)
		}
	}
	if path, err := f.Path("d.js"); err == nil {
		t.Errorf("a file that is not there has the path %s", path)
	}
}

// TestFiles_PathFollowsContent: a browser that keeps a file for ever sees a change at once, for it has another path.
func TestFiles_PathFollowsContent(t *testing.T) {
	seen := map[string]bool{}
	for _, text := range []string{"a()", "b()"} {
		f, err := New("/", fstest.MapFS{"a.js": {Data: []byte(text)}})
		if err != nil {
			t.Fatal(err)
		}
		path, _ := f.Path("a.js")
		seen[path] = true
	}
	if len(seen) != 2 {
		t.Error(seen)
	}
}

func TestFiles_Mistakes(t *testing.T) {
	for _, tree := range []fstest.MapFS{
		{"static/a.js": {}, "vendor/a.js": {}},
		{"a.exe": {}},
		{"noending": {}},
	} {
		if _, err := New("/", tree); err == nil {
			t.Errorf("%v is served", tree)
		}
	}
}

// TestVerify finds each kind of difference between a folder and its lock.
func TestVerify(t *testing.T) {
	content := []byte("a()")
	packed := compressed(content)
	for name, c := range map[string]struct {
		lock string
		tree fstest.MapFS
		want string // a part of the one thing that is wrong
	}{
		"right":     {"# file\na.js a 1.0.0 dist/a.js " + Hash(content) + "\n", fstest.MapFS{"a.js": {Data: content}}, ""},
		"packed":    {"a.js.gz a 1.0.0 dist/a.js " + Hash(content), fstest.MapFS{"a.js.gz": {Data: packed}}, ""},
		"changed":   {"a.js a 1.0.0 dist/a.js " + Hash(content), fstest.MapFS{"a.js": {Data: []byte("b()")}}, "the hash is"},
		"missing":   {"a.js a 1.0.0 dist/a.js " + Hash(content), fstest.MapFS{}, "does not exist"},
		"unknown":   {"", fstest.MapFS{"b.js": {Data: content}}, "does not name it"},
		"no hash":   {"a.js a 1.0.0 dist/a.js -", fstest.MapFS{"a.js": {Data: content}}, "it is -"},
		"not a .gz": {"a.js.gz a 1.0.0 dist/a.js " + Hash(content), fstest.MapFS{"a.js.gz": {Data: []byte("not compressed")}}, "gzip"},
		"bad line":  {"a.js a 1.0.0", fstest.MapFS{}, "a line has"},
	} {
		c.tree[LockName] = &fstest.MapFile{Data: []byte(c.lock)}
		wrong := Verify(c.tree)
		if c.want == "" && wrong != nil || c.want != "" && (len(wrong) != 1 || !strings.Contains(wrong[0].Error(), c.want)) {
			t.Errorf("%s: %v", name, wrong)
		}
	}
	if Verify(fstest.MapFS{}) == nil {
		t.Error("a folder without a lock is right")
	}
}
