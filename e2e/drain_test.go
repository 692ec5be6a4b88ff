package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/sendquota/sendquota/internal/testenv"
)

// keptAlive is a connection to an API that is used for one request after
// another. Unlike net/http's client it repeats nothing by itself.
type keptAlive struct {
	net.Conn
	r   *bufio.Reader
	key string
}

func (b *bundle) keepAlive() (*keptAlive, error) {
	u, err := url.Parse(b.api)
	if err != nil {
		return nil, err
	}
	c, err := net.Dial("tcp", u.Host)
	if err != nil {
		return nil, err
	}
	b.t.Cleanup(func() { _ = c.Close() })
	return &keptAlive{c, bufio.NewReader(c), b.Key}, c.SetDeadline(time.Now().Add(time.Minute))
}

// ask sends a request, and reports whether the connection closes after the answer.
func (c *keptAlive) ask(method, path, body string) (status int, last bool, err error) {
	_, err = fmt.Fprintf(c, "%s %s HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", method, path, c.key, len(body), body)
	if err != nil {
		return 0, false, err
	}
	res, err := http.ReadResponse(c.r, nil)
	if err != nil {
		return 0, false, err
	}
	_, err = io.Copy(io.Discard, res.Body)
	return res.StatusCode, res.Close, err
}

// ended reports whether the other side has closed the connection in good order.
func (c *keptAlive) ended() bool {
	_, err := c.r.ReadByte()
	return err == io.EOF
}

// must is ask where the answer has to have a status.
func (c *keptAlive) must(t *testing.T, path string, want int) (last bool) {
	t.Helper()
	status, last, err := c.ask("GET", path, "")
	if err != nil || status != want {
		t.Errorf("%s: %d, %v, want %d", path, status, err, want)
	}
	return last
}

func (b *bundle) mustKeepAlive() *keptAlive {
	b.t.Helper()
	c, err := b.keepAlive()
	testenv.Check(b.t, err)
	return c
}

func drainConfig(drain string) options {
	return options{config: strings.Replace(usualConfig, "drain: 0s", "drain: "+drain, 1)}
}

// TestDrain_KeptAliveCallers stops one of two APIs under twelve callers that submit without a pause. Each goes to the
// other API when the first one closes its connection: every request is answered, and nothing is lost.
func TestDrain_KeptAliveCallers(t *testing.T) {
	allOnly(t)
	t.Parallel()
	b := setupWith(t, drainConfig("10m")) // the test ends it
	old := b.StartAPI()
	next := b.beside()
	idle := b.mustKeepAlive()
	if idle.must(t, "/healthz", 200) {
		t.Fatal("the connection is not kept alive")
	}

	const callers = 12
	var booked, moved atomic.Int64
	var all sync.WaitGroup
	stop := make(chan struct{})
	for n := range callers {
		c := b.mustKeepAlive()
		all.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				status, last, err := c.ask("POST", "/v1/pushes", fmt.Sprintf(`{"recipient":"r-%d-%d","channel":"log","message":{}}`, n, i))
				if err != nil || status != http.StatusCreated {
					t.Errorf("caller %d, request %d: %d, %v", n, i, status, err)
					return
				}
				booked.Add(1)
				if !last {
					continue
				}
				if moved.Add(1); !c.ended() {
					t.Errorf("caller %d should leave, but its connection stays open", n)
				}
				if c, err = next.keepAlive(); err != nil {
					t.Errorf("caller %d: %v", n, err)
					return
				}
			}
		})
	}
	b.until("the callers are at work", func() bool { return booked.Load() > 10*callers })
	_ = old.Signal(syscall.SIGTERM)
	b.until("every caller has moved", func() bool { return moved.Load() == callers || t.Failed() })
	before := booked.Load()
	b.until("they go on", func() bool { return booked.Load() > before+10*callers || t.Failed() })
	close(stop)
	all.Wait()

	for _, path := range []string{"/readyz", "/healthz"} { // the listener stays open, to be asked
		if !b.mustKeepAlive().must(t, path, map[string]int{"/readyz": 503, "/healthz": 200}[path]) {
			t.Errorf("%s: the connection is kept alive", path)
		}
	}
	if !idle.must(t, "/healthz", 200) || !idle.ended() {
		t.Error("an idle connection is not closed after its answer")
	}
	var rows int64
	for page := ""; ; {
		_, answer := next.call("GET", "/v1/pushes?page_size=500&page_token="+url.QueryEscape(page), nil)
		rows += int64(len(answer["pushes"].([]any)))
		if page, _ = answer["next_page_token"].(string); page == "" {
			break
		}
	}
	if rows != booked.Load() {
		t.Errorf("%d pushes for %d answers", rows, booked.Load())
	}

	_ = old.Signal(syscall.SIGTERM) // a second signal does not wait
	<-old.Exited()
	if err := old.Err(); err == nil || !strings.Contains(err.Error(), "terminated") {
		t.Errorf("after a second signal: %v", err)
	}
}

// TestDrain_Ends: when the time is over the API stops listening, then closes
// what is idle, and ends well.
func TestDrain_Ends(t *testing.T) {
	allOnly(t)
	t.Parallel()
	b := setupWith(t, drainConfig("1s"))
	api := b.StartAPI()
	idle := b.mustKeepAlive()
	idle.must(t, "/healthz", 200)
	began := time.Now()
	_ = api.Signal(syscall.SIGTERM)
	if !idle.ended() {
		t.Error("the idle connection was reset")
	}
	if took := time.Since(began); took < time.Second {
		t.Errorf("the idle connection was closed after %s", took)
	}
	if _, err := b.keepAlive(); err == nil {
		t.Error("it still listens")
	}
	<-api.Exited()
	if err := api.Err(); err != nil {
		t.Errorf("it ended with %v", err)
	}
}

// TestDrain_WithoutListener: what cannot listen does not wait.
func TestDrain_WithoutListener(t *testing.T) {
	allOnly(t)
	t.Parallel()
	b := setupWith(t, drainConfig("10m"))
	b.StartAPI()
	second := b.Start("api")
	<-second.Exited()
	if second.Err() == nil {
		t.Error("two APIs on one address")
	}
}
