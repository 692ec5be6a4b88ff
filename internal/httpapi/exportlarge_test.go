package httpapi

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/bulkhead"
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

// TestSends_ExportBreaksOff: an export that cannot go on does not end like a whole one.
func TestSends_ExportBreaksOff(t *testing.T) {
	b := setupAlone(t)
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

// TestExports_Turns: a tenant has two exports at a time, whatever they are of. Others are not kept waiting by them.
func TestExports_Turns(t *testing.T) {
	b := setup(t)
	turns := b.takeTurns()
	id := b.campaign(`{"message":{"body":"Hello."}}`)
	b.audience(id, "recipient\nanna\n")
	var places []*bulkhead.Loan[uuid.UUID]
	for range 2 {
		place, err := turns.exports.Acquire(t.Context(), b.tenant, 1)
		if err != nil {
			t.Fatal(err)
		}
		places = append(places, place)
	}
	paths := []string{"/v1/sends/export", "/v1/campaigns/" + id + "/export"}
	for _, path := range paths {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		r := httptest.NewRequestWithContext(ctx, "GET", path, nil)
		r.Header.Set("Authorization", "Bearer "+b.key)
		w := httptest.NewRecorder()
		if b.api.ServeHTTP(w, r); w.Code != 429 && w.Code != 503 {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
		cancel()
	}
	b.send("GET", "/v1/sends/export", "", "Authorization", "Bearer "+b.other).must(t, 200)
	places[0].Release()
	for _, path := range paths {
		b.send("GET", path, "").must(t, 200)
	}
	places[1].Release()
}
