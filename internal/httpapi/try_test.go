package httpapi

import (
	"compress/gzip"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/sendquota/sendquota/internal/assets"
)

// TestVendor_AsPublished: Scalar is what the lock names, with its licence.
func TestVendor_AsPublished(t *testing.T) {
	for _, err := range assets.Verify(os.DirFS("vendor")) {
		t.Error(err)
	}
}

// TestTryPage_Hardened: the page runs only scripts of this server, asks only this server, and no text in it becomes a
// style or a script: each answer has a nonce of its own, which its style sheets bear.
func TestTryPage_Hardened(t *testing.T) {
	a := newTestAPI()
	seen := map[string]bool{}
	for range 3 {
		r := ask(t, a, "GET", "/docs/try", "").must(t, 200)
		_, rest, _ := strings.Cut(r.text, ` nonce="`)
		nonce, _, _ := strings.Cut(rest, `"`)
		seen[nonce] = true
		want := "script-src 'self'; style-src 'nonce-" + nonce + "'; connect-src 'self'; img-src 'self' data:; default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
		if got := r.header.Get("Content-Security-Policy"); got != want || len(nonce) < 22 {
			t.Errorf("the policy is %q, want %q", got, want)
		}
		if got := r.header.Get("Cache-Control"); got != "no-store" {
			t.Errorf("Cache-Control is %q", got)
		}
		page := strings.Replace(r.text, `<link rel="icon" href="data:,">`, "", 1) // which keeps the browser from asking for one
		for _, bad := range []string{`<script(>| type="module">)`, `\sstyle=`, `\son[a-z]+=`, `<(img|link|iframe|form|base|style)\b`, `(src|href)="?(https?:)?//`} {
			if found := regexp.MustCompile(bad).FindString(page); found != "" {
				t.Errorf("the page has %q", found)
			}
		}
	}
	if len(seen) != 3 {
		t.Errorf("three answers have the nonces %v", seen)
	}
}

// TestTryPage_BesideConsole: where the console has the same origin, there is no page that runs a program of others, nor a link to it.
func TestTryPage_BesideConsole(t *testing.T) {
	a := New(nil, everything{}, Config{BesideConsole: true})
	page := ask(t, newTestAPI(), "GET", "/docs/try", "").must(t, 200)
	for _, script := range regexp.MustCompile(`src="([^"]+)"`).FindAllStringSubmatch(page.text, -1) {
		ask(t, a, "GET", script[1], "").must(t, 404, "not-found")
	}
	ask(t, a, "GET", "/docs/try", "").must(t, 404, "not-found")
	const link = `href="/docs/try"`
	for api, want := range map[string]bool{ask(t, a, "GET", "/docs", "").must(t, 200).text: false, ask(t, newTestAPI(), "GET", "/docs", "").must(t, 200).text: true} {
		if strings.Contains(api, link) != want {
			t.Errorf("the link is there: %v", !want)
		}
	}
}

// TestTryPage_Scripts: the files of the page are served, and can be cached permanently; and Scalar is configured to ask no other server.
func TestTryPage_Scripts(t *testing.T) {
	a := newTestAPI()
	page := ask(t, a, "GET", "/docs/try", "").must(t, 200)
	scripts := regexp.MustCompile(`src="([^"]+)"`).FindAllStringSubmatch(page.text, -1)
	if len(scripts) != 3 {
		t.Fatal(page.text)
	}
	for _, script := range scripts {
		r := ask(t, a, "GET", script[1], "", "Accept-Encoding", "gzip").must(t, 200)
		if r.header.Get("Content-Type") != "text/javascript; charset=utf-8" || r.header.Get("Cache-Control") != "public, max-age=31536000, immutable" || r.header.Get("Content-Encoding") != "gzip" {
			t.Errorf("%s: %v", script[1], r.header)
		}
		unpacked, err := gzip.NewReader(strings.NewReader(r.text))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(unpacked)
		if err != nil || len(text) == 0 {
			t.Errorf("%s: %d bytes, %v", script[1], len(text), err)
		}
		if !strings.Contains(script[1], "/try-open.js?") {
			continue
		}
		for _, told := range []string{"telemetry: false", "withDefaultFonts: false", `proxyUrl: ""`, "persistAuth: false", `url: "/openapi.json"`} {
			if !strings.Contains(string(text), told) {
				t.Errorf("Scalar is not told %s", told)
			}
		}
	}
	ask(t, a, "GET", "/docs/vendor/"+assets.LockName, "").must(t, 404, "not-found")
	if docs := ask(t, a, "GET", "/docs", "").must(t, 200); !strings.Contains(docs.text, `href="/docs/try"`) {
		t.Error("/docs has no link to the page")
	}
}
