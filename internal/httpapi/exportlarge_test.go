package httpapi

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestSends_ExportLarge: an export of very many attempts needs no more memory than one of few.
func TestSends_ExportLarge(t *testing.T) {
	b := setup(t)
	const n = 60_000
	b.forgeSends(b.tenant, n)
	server := httptest.NewServer(b.api)
	defer server.Close()
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	before, most := m.HeapAlloc, uint64(0)
	r, _ := http.NewRequestWithContext(t.Context(), "GET", server.URL+"/v1/sends/export", nil)
	r.Header.Set("Authorization", "Bearer "+b.key)
	began := time.Now()
	res, err := http.DefaultClient.Do(r)
	if err != nil || res.StatusCode != 200 {
		t.Fatal(err, res)
	}
	defer res.Body.Close()
	lines := 0
	for s := bufio.NewScanner(res.Body); s.Scan(); {
		if lines++; lines%20_000 == 0 {
			runtime.GC()
			runtime.ReadMemStats(&m)
			most = max(most, m.HeapAlloc)
		}
	}
	t.Logf("%d lines in %s, %d KiB more at most", lines, time.Since(began), (most-min(before, most))>>10)
	if lines != n || most > before+16<<20 {
		t.Errorf("%d lines, %d bytes more", lines, most-before)
	}
}

// TestSends_ExportBreaksOff: an export that can not go on does not end like a whole one.
func TestSends_ExportBreaksOff(t *testing.T) {
	b := setup(t)
	b.forgeSends(b.tenant, 60_000)
	server := httptest.NewServer(b.api)
	defer server.Close()
	r, _ := http.NewRequestWithContext(t.Context(), "GET", server.URL+"/v1/sends/export", nil)
	r.Header.Set("Authorization", "Bearer "+b.key)
	res, err := http.DefaultClient.Do(r)
	if err != nil || res.StatusCode != 200 {
		t.Fatal(err, res)
	}
	defer res.Body.Close()
	b.store.Close() // while the rest waits for the caller to read
	text, err := io.ReadAll(res.Body)
	if n := strings.Count(string(text), "\n"); err == nil || n == 0 || n == 60_000 {
		t.Errorf("%d lines, and the end is %v", n, err)
	}
}
