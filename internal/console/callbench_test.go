package console

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/sendquota/sendquota/client"
)

// BenchmarkCall compares calls of the API as pages make them, in this process, with the same over a connection on loopback: a small
// one, and a list of 200 pushes.
func BenchmarkCall(b *testing.B) {
	s := setup(b)
	for i := range 200 {
		s.submit(fmt.Sprint("r", i), 26*time.Hour)
	}
	c := &console{cfg: Config{Now: time.Now}, api: s.handler}
	page := c.newPage(httptest.NewRecorder(), httptest.NewRequestWithContext(b.Context(), http.MethodGet, "/console/now", nil), s.who.Visitor)
	for _, call := range []struct {
		name, path string
		query      url.Values
	}{{"small", "/v1/caps", nil}, {"list", "/v1/pushes", url.Values{"page_size": {"200"}}}} {
		for _, way := range []struct {
			name string
			api  *client.Client
		}{{"in process", page.api}, {"over loopback", s.api}} {
			b.Run(call.name+" "+way.name, func(b *testing.B) {
				for b.Loop() {
					var answer map[string]any
					if err := way.api.Get(b.Context(), call.path, call.query, &answer); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
