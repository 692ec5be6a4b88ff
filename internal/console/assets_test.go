package console

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/sendquota/sendquota/internal/assets"
)

// TestVendor_AsPublished: the files of others are those that the lock names, byte by byte, each package with its licence.
func TestVendor_AsPublished(t *testing.T) {
	t.Parallel()
	folder := os.DirFS("vendor")
	for _, err := range assets.Verify(folder) {
		t.Error(err)
	}
	lock, err := assets.ReadLock(folder)
	if err != nil {
		t.Fatal(err)
	}
	licensed := map[string]bool{}
	for _, l := range lock {
		licensed[l.Package] = licensed[l.Package] || strings.Contains(l.File, "LICENSE")
	}
	for name, has := range licensed {
		if !has {
			t.Errorf("%s has no licence", name)
		}
	}
	if len(licensed) < 2 {
		t.Errorf("the lock names %d packages", len(licensed))
	}
	// `go install …@version` would not get what lies deeper.
	entries, err := fs.ReadDir(folder, ".")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() {
			t.Errorf("vendor/%s is a folder", e.Name())
		}
	}
}

func TestAssets_Paths(t *testing.T) {
	t.Parallel()
	f := newAssets()
	for name, want := range map[string]string{"htmx.min.js": "/console/vendor/", "hx-sse.min.js": "/console/vendor/", "uPlot.iife.min.js": "/console/vendor/", "uPlot.min.css": "/console/vendor/", "console.css": "/console/static/"} {
		if path, err := f.Path(name); err != nil || !strings.HasPrefix(path, want+name+"?v=") {
			t.Errorf("%s has the path %s, %v", name, path, err)
		}
	}
}

// banned lists the patterns that our Content-Security-Policy forbids, and ways around it. Scripts may set styles through the CSSOM.
var banned = map[string]*regexp.Regexp{
	"an inline style":         regexp.MustCompile(`(?i)<[a-z][^>]*[\s"']style\s*=|\sstyle\s*=\s*["']|setAttribute\(\s*["']style|<style\b`),
	"an inline handler":       regexp.MustCompile(`(?i)<[a-z][^>]*[\s"']on[a-z]+\s*=|setAttribute\(\s*["']on`),
	"an inline script":        regexp.MustCompile(`(?i)<script\b|javascript:`),
	"hx-on or js: of htmx":    regexp.MustCompile(`(?i)hx-on\b|hx-(?:vals|headers|trigger)\s*=\s*["']\s*js:`),
	"a text run as a program": regexp.MustCompile(`\beval\s*\(|\bFunction\s*\(|set(?:Timeout|Interval)\(\s*["'` + "`" + `]|document\.write\b`),
	"a path of another host":  regexp.MustCompile(`(?i)https?://|["'(]//[a-z0-9]`),
	"an import in a style":    regexp.MustCompile(`(?i)@import`),
}

// namespaces are no paths, though they look it.
var namespaces = strings.NewReplacer("http://www.w3.org/2000/svg", "", "http://www.w3.org/1999/xhtml", "", "http://www.w3.org/1999/xlink", "")

// srcScript is the only form of a script element that a template may have: it is cut out before the search.
var srcScript = regexp.MustCompile(`(?i)<script(?: type="module"| defer| async)* src="(?:\{\{[^{}]*\}\}|[^"<>{}])+"(?: type="module"| defer| async)*></script>`)

func findBanned(text string) (found []string) {
	text = srcScript.ReplaceAllString(namespaces.Replace(text), "")
	for what, pattern := range banned {
		if hit := pattern.FindString(text); hit != "" {
			found = append(found, what+": "+hit)
		}
	}
	return found
}

// TestPages_Strict goes through all templates and our own scripts and styles.
func TestPages_Strict(t *testing.T) {
	t.Parallel()
	seen := 0
	for _, folder := range []string{"static", "frame/templates", "templates", "campaigns/templates", "calendar/templates", "people/templates", "activity/templates", "system/templates"} {
		err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			for _, found := range findBanned(string(text)) {
				t.Errorf("%s has %s", path, found)
			}
			seen++
			return err
		})
		if err != nil && !os.IsNotExist(err) {
			t.Error(err)
		}
	}
	if seen == 0 {
		t.Error("no file was checked")
	}
}

func TestFindBanned(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{
		`<p style="color:red">`, "<p\nstyle = 'a'>", `<style>`, `e.setAttribute("style", x)`, "`<p style=\"${x}\">`",
		`<button onclick="x()">`, "<a\n  onfocus=x>", `e.setAttribute('onclick', x)`,
		`<script>x()</script>`, `<script type="module">x()</script>`, `<script src="/a.js">x()</script>`, `<script nonce="{{.}}"></script>`, `<a href="javascript:x">`,
		`<p hx-on:click="x">`, `<p hx-on="x">`, `<p hx-vals='js:{a:1}'>`,
		`eval("x")`, `new Function("x")`, `setTimeout("x()", 1)`, `document.write(x)`,
		`<img src="https://example.com/a.png">`, `<img src="//example.com/a.png">`, `url(//example.com)`, `fetch("http://x")`, `@import "a.css";`,
	} {
		if findBanned(bad) == nil {
			t.Errorf("not found: %s", bad)
		}
	}
	for _, good := range []string{
		`<script type="module" src="{{asset "time-axis.js"}}"></script>`, `<script src="/a.js" defer></script>`, `<link rel="stylesheet" href="/a.css">`,
		`e.style.left = x + "px"; const style = getComputedStyle(e); e.onclick = f; if (i < n) { once = 1 } retrieval(x); myFunction (x)`, `createElementNS("http://www.w3.org/2000/svg", "g")`, `// a comment`,
		`<option value="on">on = 1</option>`, `setTimeout(() => x, 1)`, `<p class="style" data-on="x" hx-get="/x">`,
	} {
		if found := findBanned(good); found != nil {
			t.Errorf("%s: %s", good, found)
		}
	}
}
