package e2e

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"

	"github.com/sendquota/sendquota/internal/assets"
	"github.com/sendquota/sendquota/internal/testenv"
)

// goodPage is a page without findings.
const goodPage = `<!doctype html><html lang="en"><title>Good</title><body><main><h1>Good</h1>
	<label>Name <input id="name"></label> <button>Save</button></main></body></html>`

// TestWindow_Finds: each fault that a screen can have is reported, and nothing of a page without one.
func TestWindow_Finds(t *testing.T) {
	allOnly(t)
	t.Parallel()
	for name, c := range map[string]struct {
		page, script, want string // script: served at /a.js
	}{
		"nothing":           {goodPage, "", ""},
		"inline style":      {strings.Replace(goodPage, "<main>", `<main style="color:red">`, 1), "", "style-src-attr inline"},
		"inline script":     {strings.Replace(goodPage, "<main>", `<script>1</script><main>`, 1), "", "script-src-elem inline"},
		"style by script":   {goodPage, `document.body.setAttribute("style", "color: red")`, "style-src-attr inline"},
		"console.error":     {goodPage, `console.error("broken", 7)`, "console.error: \"broken\" 7"},
		"uncaught":          {goodPage, `setTimeout(() => nothing.here)`, "nothing is not defined"},
		"missing file":      {strings.Replace(goodPage, "<main>", `<img src="/missing.png" alt="a"><main>`, 1), "", "404"},
		"outside request":   {goodPage, `fetch("https://example.com/").catch(() => {})`, "a request to others: https://example.com/"},
		"outside in https:": {goodPage, `new EventSource("http://localhost:1/")`, "a request to others: http://localhost:1/"},
		"too wide":          {strings.Replace(goodPage, "<main>", `<main><svg width="400" height="9" role="img" aria-label="wide"></svg>`, 1), "", "the page is"},
		"no label":          {strings.Replace(goodPage, "<label>Name", "<label></label>", 1), "", "axe: label"},
		"no heading":        {strings.Replace(goodPage, "h1>", "p>", 2), "", "axe: page-has-heading-one"},
		"dark on dark":      {strings.Replace(goodPage, "<body>", `<link rel="stylesheet" href="/dark.css"><body>`, 1), "", "axe: color-contrast"},
		"hidden focus":      {strings.Replace(goodPage, "<body>", `<link rel="stylesheet" href="/hidden.css"><body>`, 1), "", "no number of tabs leads to"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				file, ok := map[string][2]string{
					"/":            {"text/html; charset=utf-8", strings.Replace(c.page, "</body>", `<script src="/a.js"></script></body>`, 1)},
					"/a.js":        {"text/javascript", c.script},
					"/dark.css":    {"text/css", "@media (prefers-color-scheme: dark) { body { background: #222; color: #444 } }"},
					"/hidden.css":  {"text/css", "button { visibility: hidden }"},
					"/favicon.ico": {"image/x-icon", ""},
				}[r.URL.Path]
				if !ok {
					http.NotFound(w, r)
					return
				}
				w.Header().Set("Content-Type", file[0])
				w.Header().Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src *")
				_, _ = w.Write([]byte(file[1]))
			}))
			defer server.Close()
			err := testenv.Run(context.WithoutCancel(t.Context()), func(t testenv.T) {
				w := openWindow(t, server.URL)
				w.visit("/")
				w.screen("")
				w.tabTo("button")
			})
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("the window reports: %v", err)
			}
		})
	}
}

// TestWindow_Expected: what a test provokes, it says; and then all else is still reported.
func TestWindow_Expected(t *testing.T) {
	allOnly(t)
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(strings.Replace(goodPage, "</body>", `<script>console.error("another")</script></body>`, 1)))
	}))
	defer server.Close()
	for expected, want := range map[string]string{"403": "another", "another": "403", "": ": 403"} {
		err := testenv.Run(context.WithoutCancel(t.Context()), func(t testenv.T) {
			w := openWindow(t, server.URL)
			if expected != "" {
				w.expect(expected)
				w.visit("/", 403)
			} else {
				w.visit("/")
			}
		})
		if err == nil || !strings.Contains(err.Error(), want) || expected != "" && strings.Contains(err.Error(), expected) {
			t.Errorf("where %q is expected, the window reports: %v", expected, err)
		}
	}
}

// TestVendor_AsPublished: axe-core is what the lock names, with its licences.
func TestVendor_AsPublished(t *testing.T) {
	for _, err := range assets.Verify(os.DirFS("testdata/vendor")) {
		t.Error(err)
	}
}

// TestWindow_Keyboard: what is typed, pressed and clicked arrives as from a person.
func TestWindow_Keyboard(t *testing.T) {
	allOnly(t)
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte(strings.Replace(goodPage, "</body>", `<p id="said"></p><script>
			document.querySelector("button").onclick = e => said.innerText = (e.isTrusted ? "trusted " : "") + document.querySelector("#name").value
		</script></body>`, 1)))
	}))
	defer server.Close()
	w := openWindow(t, server.URL)
	w.visit("/")
	w.fill("#name", "anna")
	w.fill("#name", "bert")
	w.click("button", "Save")
	if got := w.text("#said"); got != "trusted bert" {
		t.Errorf("a click made %q", got)
	}
	w.press(kb.Tab)
	w.tabTo("#name")
	w.press("x", kb.Home, "y")
	w.tabTo("button")
	w.press(kb.Enter)
	if got := w.text("#said"); got != "trusted yx" {
		t.Errorf("the keys made %q", got)
	}
}
