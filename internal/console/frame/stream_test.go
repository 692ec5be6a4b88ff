package frame

import (
	"bufio"
	"context"
	"html/template"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/assets"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/testenv"
)

// tenants is an authenticator of users who have signed in. A request can name its tenant.
type tenants struct{ who Visitor }

func (a tenants) SignedIn(r *http.Request) (Visitor, bool) {
	who := a.who
	if other := r.Header.Get("X-Neighbour"); other != "" {
		who.Caller.Tenant = uuid.MustParse(other)
	}
	return who, true
}
func (tenants) Mount(chi.Router, *Site)          {}
func (tenants) Wrap(h http.Handler) http.Handler { return h }
func (tenants) Cookie(name, value string, seconds int, _ http.SameSite) *http.Cookie {
	return &http.Cookie{Name: name, Value: value, MaxAge: seconds}
}

// siteOf returns a console without sections.
func siteOf(t *testing.T, cfg Config) *Site {
	t.Helper()
	own := fstest.MapFS{}
	for _, name := range []string{"icon.svg", "console.css", "console.js", "htmx.min.js", "hx-sse.min.js"} {
		own["static/"+name] = &fstest.MapFile{}
	}
	files, err := assets.New("/console/", own)
	testenv.Check(t, err)
	return New(http.NotFoundHandler(), tenants{Visitor{Caller: push.Caller{Tenant: uuid.New(), Scopes: push.Scopes}, Role: "admin"}}, NewScreens(files, nil), nil, cfg)
}

// TestStream: a stream sends what changed, ends when the program stops, and a tenant has no more of them than its bound.
func TestStream(t *testing.T) {
	t.Parallel()
	var stopping atomic.Bool
	c := siteOf(t, Config{Stopping: stopping.Load})
	template.Must(c.screens.templates["error"].New("clock").Parse("{{.Main}}"))
	r := chi.NewMux()
	r.Get("/live", c.serve("", shortForm, func(p *Page) error {
		return p.Stream("error", "clock", time.Millisecond, func() (any, error) { return time.Now().String(), nil })
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

// TestStream_PlaceOfNeighbour: one tenant has all streams, and another one that opens a page gets a place: a stream of the first one ends.
func TestStream_PlaceOfNeighbour(t *testing.T) {
	t.Parallel()
	c := siteOf(t, Config{})
	c.streams = newStreamPlaces(3, 3)
	template.Must(c.screens.templates["error"].New("clock").Parse("{{.Main}}"))
	r := chi.NewMux()
	r.Get("/live", c.serve("", shortForm, func(p *Page) error {
		return p.Stream("error", "clock", time.Millisecond, func() (any, error) { return time.Now().String(), nil })
	}))
	server := httptest.NewServer(r)
	t.Cleanup(server.Close) // after t.Context has ended the streams
	open := func(neighbour string) *http.Response {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/live", nil)
		testenv.Check(t, err)
		req.Header.Set("X-Neighbour", neighbour)
		answer, err := http.DefaultClient.Do(req)
		testenv.Check(t, err)
		return answer
	}
	ended := make(chan error, 3)
	for range 3 {
		answer := open("")
		go func() {
			_, err := io.Copy(io.Discard, answer.Body)
			ended <- err
		}()
	}
	if answer := open(uuid.NewString()); answer.StatusCode != http.StatusOK {
		t.Fatalf("the neighbour: %s", answer.Status)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if answer := open(""); answer.StatusCode != http.StatusTooManyRequests || len(ended) != 0 {
		t.Errorf("the first one again: %s, %d ended", answer.Status, len(ended))
	}
}

// TestStreamPlaces_Worst: whatever number of tenants take all that they can get, again and again, each has its part, and so has the next one.
func TestStreamPlaces_Worst(t *testing.T) {
	t.Parallel()
	for _, tenants := range []int{1, 7, 8, 15, 40, 399} {
		s := newStreamPlaces(maxStreams, maxTenantStreams)
		var all []uuid.UUID
		for range tenants + 1 {
			all = append(all, uuid.New())
		}
		for range 3 {
			for _, greedy := range all {
				for range maxTenantStreams + 1 {
					s.take(greedy)
				}
			}
		}
		part := min(maxTenantStreams, maxStreams/len(all))
		used := 0
		for _, tenant := range all {
			n := len(s.open[tenant])
			if used += n; n < part || n > maxTenantStreams {
				t.Errorf("%d tenants: one has %d places, its part is %d", len(all), n, part)
			}
		}
		if used != s.used || used > maxStreams {
			t.Errorf("%d tenants: %d places are taken, %d are counted", len(all), used, s.used)
		}
		for _, tenant := range all {
			for len(s.open[tenant]) > 0 {
				s.open[tenant][0].release()
			}
		}
		if s.used != 0 || len(s.open) != 0 {
			t.Errorf("%d places of %d tenants are left", s.used, len(s.open))
		}
	}
}
