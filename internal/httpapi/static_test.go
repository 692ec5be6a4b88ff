package httpapi

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestStatic_MadeOnce: what is the same for all is compressed where that is wanted, has a tag, and is not sent to
// those who have it.
func TestStatic_MadeOnce(t *testing.T) {
	a := newTestAPI()
	for _, path := range []string{"/openapi.json", "/docs"} {
		plain := ask(t, a, "GET", path, "").must(t, 200)
		small := ask(t, a, "GET", path, "", "Accept-Encoding", "br, gzip").must(t, 200)
		r, err := gzip.NewReader(strings.NewReader(small.text))
		if err != nil {
			t.Fatal(path, err)
		}
		if unpacked, err := io.ReadAll(r); err != nil || string(unpacked) != plain.text {
			t.Errorf("%s: compressed it is another page, %v", path, err)
		}
		if len(small.text)*4 > len(plain.text) || small.header.Get("Content-Encoding") != "gzip" || small.header.Get("Vary") != "Accept-Encoding" {
			t.Errorf("%s: %d bytes of %d, %v", path, len(small.text), len(plain.text), small.header)
		}
		if plain.header.Get("ETag") == small.header.Get("ETag") || plain.header.Get("Content-Encoding") != "" {
			t.Errorf("%s: the tags %s and %s", path, plain.header.Get("ETag"), small.header.Get("ETag"))
		}
		for _, encoding := range []string{"", "gzip"} {
			tag := ask(t, a, "GET", path, "", "Accept-Encoding", encoding).header.Get("ETag")
			if same := ask(t, a, "GET", path, "", "Accept-Encoding", encoding, "If-None-Match", tag); same.status != 304 || same.text != "" {
				t.Errorf("%s: %d with %d bytes for a caller that has it", path, same.status, len(same.text))
			}
		}
		if head := ask(t, a, "HEAD", path, ""); head.status != 200 || head.text != "" || head.header.Get("Content-Length") == "" {
			t.Errorf("%s: HEAD %d %v", path, head.status, head.header)
		}
	}
}

// BenchmarkOpenAPI sends what cost 15 ms when it was made for every request.
func BenchmarkOpenAPI(b *testing.B) {
	a, r := newTestAPI(), httptest.NewRequest("GET", "/openapi.json", nil)
	for b.Loop() {
		a.ServeHTTP(discard{header: http.Header{}}, r)
	}
}
