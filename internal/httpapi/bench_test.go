package httpapi

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) Write(b []byte) (int, error) { return len(b), nil }
func (d discard) WriteHeader(int)             {}

// BenchmarkOverhead measures a request without its work: everything except the schedule, for a request with a known key and
// a faulty query.
func BenchmarkOverhead(b *testing.B) {
	h := New(nil, everything{}, Config{})
	r := httptest.NewRequest("GET", "/v1/pushes?x=1", nil)
	r.Header.Set("Authorization", "Bearer key")
	b.ReportAllocs()
	for b.Loop() {
		h.ServeHTTP(discard{header: http.Header{}}, r)
	}
}
