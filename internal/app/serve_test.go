package app

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/sendquota/sendquota/internal/apikey"
	"github.com/sendquota/sendquota/internal/config"
	"github.com/sendquota/sendquota/internal/push"
	"github.com/sendquota/sendquota/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// patience is a time-out that tests wait for, and that a correct request does not reach.
const patience = 3 * time.Second

// bundle is an API that listens.
type bundle struct {
	t    *testing.T
	app  *App
	addr string
	key  string
	stop func() error // what serving returned

	came, asked *atomic.Int64 // connections that were accepted, if only to wait for another to end, and requests
}

// countingListener counts the connections that it accepts.
type countingListener struct {
	net.Listener
	came *atomic.Int64
}

func (e countingListener) Accept() (net.Conn, error) {
	c, err := e.Listener.Accept()
	if err == nil {
		e.came.Add(1)
	}
	return c, err
}

// setup serves the whole API.
func setup(t *testing.T, p serverTimeouts) *bundle {
	t.Helper()
	cfg, err := config.Load([]string{"DATABASE_URL=" + testenv.SharedPostgres(t), "REDIS_URL=" + testenv.Redis(t)})
	if err != nil {
		t.Fatal(err)
	}
	a, err := Open(t.Context(), cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	tenant, _, err := a.store.CreateTenant(t.Context(), uuid.NewString())
	if err != nil {
		t.Fatal(err)
	}
	h := &bundle{t: t, app: a, came: new(atomic.Int64), asked: new(atomic.Int64)}
	if _, h.key, err = a.store.CreateKey(t.Context(), apikey.NewKey{Tenant: tenant, Scopes: push.Scopes}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	h.listen(p)
	return h
}

// beside returns the same API at another address, for another test.
func (h *bundle) beside(t *testing.T, p serverTimeouts) *bundle {
	t.Helper()
	b := &bundle{t: t, app: h.app, key: h.key, came: new(atomic.Int64), asked: new(atomic.Int64)}
	b.listen(p)
	return b
}

// listen serves the API at one more address, which becomes the address of the bundle.
func (h *bundle) listen(p serverTimeouts) {
	h.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		h.t.Fatal(err)
	}
	h.addr = l.Addr().String()
	api := h.app.handler()
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.asked.Add(1)
		api.ServeHTTP(w, r)
	})
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- h.app.serveOn(ctx, "api", countingListener{l, h.came}, handler, p) }()
	stop := func() error { cancel(); err := <-served; served <- err; return err }
	h.stop = stop
	h.t.Cleanup(func() {
		if err := stop(); err != nil {
			h.t.Error(err)
		}
	})
}

// dial connects, and sends a text.
func (h *bundle) dial(text string) *wire {
	h.t.Helper()
	began := time.Now()
	c, err := net.Dial("tcp", h.addr)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(2 * time.Minute))
	_, _ = io.WriteString(c, text)
	return &wire{Conn: c, t: h.t, r: bufio.NewReader(c), began: began}
}

// wire is a raw connection.
type wire struct {
	net.Conn
	t     *testing.T
	r     *bufio.Reader
	began time.Time
}

// status reads one answer; 0: the connection ended instead.
func (w *wire) status() int {
	res, err := http.ReadResponse(w.r, nil)
	if err != nil {
		return 0
	}
	_, _ = io.Copy(io.Discard, res.Body)
	_ = res.Body.Close()
	return res.StatusCode
}

// over fails the test unless the server closes the connection, some time after its
// beginning at least.
func (w *wire) over(least time.Duration) {
	w.t.Helper()
	_, err := io.Copy(io.Discard, w.r)
	if took := time.Since(w.began); took < least || err != nil && strings.Contains(err.Error(), "timeout") {
		w.t.Errorf("it was over after %s, want %s at least (%v)", took, least, err)
	}
}

// drip writes a byte every 50 ms, as long as it can.
func (w *wire) drip(b string) {
	go func() {
		for {
			if _, err := io.WriteString(w, b); err != nil {
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
	}()
}

const healthy = "GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n"

func (h *bundle) post(path, more string) string {
	return "POST " + path + " HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer " + h.key + "\r\nContent-Type: application/json\r\n" + more + "\r\n"
}

// await waits for a fact.
func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	testenv.Until(t, time.Millisecond, what, is)
}

// calm are time-outs that no client reaches, however busy the machine is.
var calm = serverTimeouts{
	header: time.Minute, request: time.Minute, answer: time.Minute, idle: time.Minute, stop: 300 * time.Millisecond, headerBytes: 32 << 10, connections: 100,
}

// A client that takes too long is cut off, and not before.
func TestServer_SlowClients(t *testing.T) {
	t.Parallel()
	whole := setup(t, calm)
	const brief = 500 * time.Millisecond
	for name, row := range map[string]struct {
		short func(*serverTimeouts) // the only time-out that a client can reach
		story func(t *testing.T, h *bundle)
	}{
		"says nothing": {func(p *serverTimeouts) { p.header = brief }, func(_ *testing.T, h *bundle) { h.dial("").over(brief) }},
		"drips its header": {func(p *serverTimeouts) { p.header = brief }, func(_ *testing.T, h *bundle) {
			c := h.dial("GET /healthz HTTP/1.1\r\nX-Slow: ")
			c.drip("x")
			c.over(brief)
		}},
		"drips its body": {func(p *serverTimeouts) { p.request = brief }, func(t *testing.T, h *bundle) {
			c := h.dial(h.post("/v1/pushes", "Content-Length: 60000\r\n"))
			c.drip(" ")
			if got := c.status(); got != http.StatusBadRequest {
				t.Errorf("status %d", got)
			}
			c.over(brief)
		}},
		"drips chunks": {func(p *serverTimeouts) { p.request = brief }, func(_ *testing.T, h *bundle) {
			c := h.dial(h.post("/v1/pushes", "Transfer-Encoding: chunked\r\n"))
			c.drip("1\r\n \r\n")
			c.over(brief)
		}},
		"drips a body to no path": {func(p *serverTimeouts) { p.request = brief }, func(t *testing.T, h *bundle) { // it is refused, and the rest not waited for
			c := h.dial("POST /nothing HTTP/1.1\r\nHost: h\r\nContent-Length: 60000\r\n\r\n")
			c.drip(" ")
			if got := c.status(); got != http.StatusNotFound {
				t.Errorf("status %d", got)
			}
			c.over(0)
		}},
		"promises a body": {func(p *serverTimeouts) { p.request = brief }, func(_ *testing.T, h *bundle) {
			h.dial(h.post("/v1/pushes", "Content-Length: 10\r\n")).over(brief)
		}},
		"stays, idle": {func(p *serverTimeouts) { p.idle = brief }, func(t *testing.T, h *bundle) {
			c := h.dial(healthy)
			if got := c.status(); got != http.StatusOK {
				t.Errorf("status %d", got)
			}
			c.over(brief)
		}},
		"comes back in time": {func(p *serverTimeouts) { p.header, p.request, p.answer = patience, patience, patience }, func(t *testing.T, h *bundle) {
			c := h.dial(healthy)
			for range 4 { // together longer than any time-out of a request
				if got := c.status(); got != http.StatusOK {
					t.Errorf("status %d", got)
				}
				time.Sleep(patience / 3)
				_, _ = io.WriteString(c, healthy)
			}
		}},
		"does not read": {func(p *serverTimeouts) { p.answer = brief }, func(t *testing.T, h *bundle) {
			c := h.dial("")
			_ = c.Conn.(*net.TCPConn).SetReadBuffer(1 << 10)
			for sent := 0; ; sent++ {
				if sent > 1_000_000 {
					t.Fatal("it is never cut off")
				}
				if _, err := io.WriteString(c, "GET /openapi.json HTTP/1.1\r\nHost: h\r\n\r\n"); err != nil {
					break
				}
			}
			if took := time.Since(c.began); took < brief {
				t.Errorf("it was cut off after %s", took)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := calm
			row.short(&p)
			row.story(t, whole.beside(t, p))
		})
	}
}

// Large and broken requests are refused before they are read to their end, and do not harm
// the next request.
func TestServer_LargeAndBrokenRequests(t *testing.T) {
	t.Parallel()
	p := calm
	p.idle = 400 * time.Millisecond // some rows end with a connection that is kept
	h := setup(t, p)
	chunk := "10000\r\n" + strings.Repeat(" ", 0x10000) + "\r\n"
	for name, row := range map[string]struct {
		text   string
		status []int // one for each answer
	}{
		"a huge header":               {"GET /healthz HTTP/1.1\r\nHost: h\r\nX-Huge: " + strings.Repeat("x", 1<<20), []int{431}},
		"many headers":                {"GET /healthz HTTP/1.1\r\nHost: h\r\n" + strings.Repeat("X-Many: 1\r\n", 10_000), []int{431}},
		"a huge path":                 {"GET /" + strings.Repeat("x", 1<<20) + " HTTP/1.1\r\n", []int{431}},
		"a body that says it is huge": {h.post("/v1/pushes", "Content-Length: 1000000000000\r\nExpect: 100-continue\r\n"), []int{413}},
		"a body without end":          {h.post("/v1/pushes/batch", "Transfer-Encoding: chunked\r\n") + strings.Repeat(chunk, 65) + "0\r\n\r\n", []int{413}},
		"two lengths":                 {h.post("/v1/pushes", "Content-Length: 2\r\nContent-Length: 3\r\n") + "{} ", []int{400}},
		"a length that is none":       {h.post("/v1/pushes", "Content-Length: -2\r\n"), []int{400}},
		"an unknown coding":           {h.post("/v1/pushes", "Transfer-Encoding: x, chunked\r\n"), []int{501}},
		"a space before the colon":    {"GET /healthz HTTP/1.1\r\nHost : h\r\n\r\n", []int{400}},
		"a folded header":             {"GET /healthz HTTP/1.1\r\nHost: h\r\nX-A: b\r\n\x00c: d\r\n\r\n", []int{400}},
		"no host":                     {"GET /healthz HTTP/1.1\r\n\r\n", []int{400}},
		"nonsense":                    {"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 hello\r\n\r\n", []int{400}},
		"nonsense behind a request":   {healthy + "nonsense\r\n\r\n" + healthy, []int{200, 400}},
		"many at once":                {strings.Repeat(healthy, 3), []int{200, 200, 200}},
		"HTTP/2 without TLS":          {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00", []int{405}},
		"an upgrade to HTTP/2": {"GET /healthz HTTP/1.1\r\nHost: h\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n" +
			"HTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n", []int{200}}, // it stays HTTP/1.1
		"a method of its own": {"TRACE /healthz HTTP/1.1\r\nHost: h\r\n\r\n", []int{405}},
		"a tunnel":            {"CONNECT example.com:443 HTTP/1.1\r\nHost: h\r\n\r\n", []int{405}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := &bundle{t: t, addr: h.addr}
			c := h.dial("")
			go func() { _, _ = io.WriteString(c, row.text) }() // it may not be taken to its end
			for i, want := range row.status {
				if got := c.status(); got != want {
					t.Errorf("answer %d has status %d, want %d", i, got, want)
				}
			}
			c.over(0)
			if got := h.dial(healthy).status(); got != http.StatusOK {
				t.Errorf("the next caller gets %d", got)
			}
		})
	}
}

// Deep nesting is an error of its place, anywhere in a body, and takes at most a few times
// as long as a flat body of the same size.
func TestServer_DeepNesting(t *testing.T) {
	t.Parallel()
	h := setup(t, calm)
	for name, row := range map[string]struct {
		path, body, says string
	}{
		"in a message":     {"/v1/pushes", `{"recipient":"r","message":{"a":` + strings.Repeat(`[`, 5000) + strings.Repeat(`]`, 5000) + `}}`, `"location":"body.message","message":"must not be nested deeper than 100 levels"`},
		"in metadata":      {"/v1/pushes", `{"recipient":"r","message":{},"metadata":` + strings.Repeat(`{"a":`, 5000) + `1` + strings.Repeat(`}`, 5000) + `}`, `"location":"body.metadata"`},
		"beyond all bound": {"/v1/pushes/batch", strings.Repeat(`[`, 4<<20), `"location":"body"`},
		"in a member":      {"/v1/pushes/batch", `{"pushes":[{"x":` + strings.Repeat(`[`, 1<<20) + strings.Repeat(`]`, 1<<20) + `}]}`, `"location":"body`},
		"in an envelope":   {"/v1/pushes/batch", `{"x":` + strings.Repeat(`{"x":`, 9000) + `1` + strings.Repeat(`}`, 9000) + `}`, `"location":"body.x"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := &bundle{t: t, addr: h.addr, key: h.key}
			ask := func(body string) (status int, text []byte, took time.Duration) {
				c := h.dial(h.post(row.path, fmt.Sprintf("Content-Length: %d\r\n", len(body))) + body)
				res, err := http.ReadResponse(c.r, nil)
				if err != nil {
					t.Fatal(err)
				}
				defer res.Body.Close()
				text, _ = io.ReadAll(res.Body)
				return res.StatusCode, text, time.Since(c.began)
			}
			status, text, deep := ask(row.body)
			if (status != 400 && status != 422 && status != 200) || !bytes.Contains(text, []byte(row.says)) {
				t.Errorf("%d %.400s", status, text)
			}
			flat := time.Hour
			for range 3 { // the quickest of each counts: a busy machine disturbs some
				_, _, again := ask(row.body)
				_, _, other := ask(`{"pushes":[],"recipient":"` + strings.Repeat("x", max(0, len(row.body)-28)) + `"}`)
				deep, flat = min(deep, again), min(flat, other)
			}
			if deep > 50*flat+50*time.Millisecond {
				t.Errorf("it took %s, and a flat body of this size %s", deep, flat)
			}
		})
	}
}

// Beyond the limit, idle connections are closed and busy ones stay. A new connection that
// finds only busy ones waits until one ends.
func TestLimitListener(t *testing.T) {
	t.Parallel()
	p := calm
	p.connections, p.header, p.request = 3, patience, patience
	h := setup(t, p)
	var idle []*wire
	for range 3 {
		c := h.dial(healthy)
		if got := c.status(); got != http.StatusOK {
			t.Fatalf("status %d", got)
		}
		idle = append(idle, c)
	}
	fourth := h.dial(healthy)
	if got := fourth.status(); got != http.StatusOK {
		t.Errorf("the fourth gets %d", got)
	}
	stayed := 0 // which one had to go depends on when each became idle, shortly after its answer
	for _, c := range idle {
		_, _ = io.WriteString(c, healthy)
		if c.status() == http.StatusOK {
			stayed++
		}
	}
	if stayed != 2 {
		t.Errorf("%d of 3 idle connections stayed", stayed)
	}

	// Three that drip replace the idle ones; the fourth has to wait.
	for range 3 {
		h.dial("GET /healthz HTTP/1.1\r\nX-Slow: ")
	}
	began := time.Now()
	if got := h.dial(healthy).status(); got != http.StatusOK {
		t.Errorf("the one that waited gets %d", got)
	}
	if took := time.Since(began); took < p.header/2 {
		t.Errorf("it waited %s", took)
	}
}

// The program stops cleanly although a client reads no answer, or a connection waits for
// another one to end.
func TestServer_StopsBesideSlowClients(t *testing.T) {
	t.Parallel()
	p := calm
	p.connections = 1
	h := setup(t, p)
	busy := h.dial(h.post("/v1/pushes", "Content-Length: 10\r\n"))
	await(t, "the first one is served", func() bool { return h.asked.Load() == 1 })
	h.dial(healthy)
	await(t, "the second one waits", func() bool { return h.came.Load() == 2 })
	began := time.Now()
	if err := h.stop(); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took < p.stop {
		t.Errorf("it stopped after %s", took)
	}
	busy.over(0)
	if _, err := net.Dial("tcp", h.addr); err == nil {
		t.Error("it still listens")
	}
}
