package console

import (
	"bufio"
	"context"
	"html/template"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/sendquota/sendquota/internal/testenv"
)

// TestStream: a stream sends what changed, ends when the program stops, and a tenant has no more of them than its bound.
func TestStream(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var stopping atomic.Bool
	c := &console{cfg: Config{Now: time.Now, Stopping: stopping.Load}, auth: b.who, screens: parseScreens(), streams: newStreams()}
	template.Must(c.screens.templates["error"].New("clock").Parse("{{.Main}}"))
	r := chi.NewMux()
	r.Get("/live", c.serve("", shortForm, func(p *page) error {
		return p.stream("error", "clock", time.Millisecond, func() (any, error) { return time.Now().String(), nil })
	}))
	server := httptest.NewServer(r)
	defer server.Close()
	open := func() (*http.Response, context.CancelFunc) {
		ctx, cancel := context.WithCancel(t.Context())
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/live", nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		return answer, cancel
	}
	var close []context.CancelFunc
	for range maxTenantStreams {
		answer, cancel := open()
		close = append(close, cancel)
		if answer.StatusCode != 200 || answer.Header.Get("Content-Type") != "text/event-stream" {
			t.Fatalf("%s %s", answer.Status, answer.Header)
		}
	}
	answer, cancel := open()
	cancel()
	if answer.StatusCode != http.StatusTooManyRequests {
		t.Errorf("one more stream: %s", answer.Status)
	}
	close[0]()
	testenv.Until(t, 10*time.Millisecond, "the server has noticed that the browser went away", func() bool {
		if answer, cancel = open(); answer.StatusCode != 200 {
			cancel()
		}
		return answer.StatusCode == 200
	})
	lines := bufio.NewScanner(answer.Body)
	if !lines.Scan() || !strings.HasPrefix(lines.Text(), "data: ") {
		t.Errorf("the first line is %q", lines.Text())
	}
	stopping.Store(true)
	for lines.Scan() { // until the server ends the stream
	}
	if lines.Err() != nil {
		t.Error(lines.Err())
	}
	cancel()
	for _, c := range close {
		c()
	}
}
